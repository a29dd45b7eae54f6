// Evaluates a step: stages of layers under core's schedule, then gradients and
// the update.
#include "compiler/planner/transformer/evaluate.h"

#include <algorithm>
#include <cmath>

#include "compiler/core/schedule_generators.h"
#include "compiler/core/timetable.h"
#include "compiler/planner/cost/cost.h"
#include "compiler/planner/transformer/check_runs.h"
#include "compiler/planner/transformer/layer_cost.h"

namespace partita::planner {
namespace {

using core::CollectiveKind;
using core::ElementBytes;

// Adam reads gradient, parameter and two moments in f32. It writes three of
// them and the 16-bit copy. Unscaling, the norm and clipping each pass over the
// gradients.
constexpr double kUpdateBytes = 16 + 14 + 12;
// f32 parameters have no 16-bit copy.
constexpr double kPlainUpdateBytes = 16 + 12;

// Rounds of `pp` microbatches in a timetable. The rest of a step is
// extrapolated: after its start, every round takes the same time.
constexpr int kRounds = 3;

core::Schedule ScheduleOf(const Division& d, int microbatches) {
  switch (d.schedule) {
    case PipelineSchedule::kGpipe:
      return core::GPipe(d.pp, microbatches);
    case PipelineSchedule::kZbH1:
      return core::ZeroBubbleH1(d.pp, microbatches);
    case PipelineSchedule::kZbV:
      return core::ZeroBubbleV(d.pp, microbatches);
    case PipelineSchedule::k1F1B:
      break;
  }
  return d.vpp > 1 ? core::Interleaved(d.pp, d.vpp, microbatches)
                   : core::OneForwardOneBackward(d.pp, microbatches);
}

class Evaluation {
 public:
  Evaluation(const Architecture& a, const Division& d, const Cluster& cluster,
             const Software& software)
      : a_(a),
        d_(d),
        cluster_(cluster),
        software_(software),
        setting_{a, d, cluster, software} {}

  Prediction Run();
  // Lower bound for a division without an explicit cut.
  StepBound LowerBound();

 private:
  void MakeStages();
  void AddSums();
  void FindGathers();
  void RunPipeline();
  void FindTransfer();
  struct Exposed {
    double forward = 0, backward = 0;
    double both() const { return forward + backward; }
  };
  Exposed ExposedOf(double layers, const PartCost& work) const;
  double MinPipelineSeconds() const;
  std::vector<double> TableEnds(int64_t microbatches, const core::Costs& costs);
  void ReduceGradients();
  void Update();
  void Account();

  // f32 gradients are reduced in f32.
  double GradientBytes() const {
    return std::max(software_.gradient_bytes, ElementBytes(d_.precision));
  }
  // The share of collectives that computing hides: none if they slow it.
  double HiddenShare(double part) const {
    return cluster_.device.overlaps ? part : 0;
  }
  // True if ZeRO-2 and 3 communicate once per step.
  bool Defers() const { return DefersZero(software_, d_.pp); }
  // Exposed seconds of a collective of `time` seconds. It runs in one part per
  // layer, or per stage in a pipeline. All parts but one are concurrent with
  // `work` seconds of computation, which hide the share `part` of them.
  double ExposedBeside(double time, double part, double work) const {
    const double parts =
        d_.pp == 1 ? double(a_.layers) * PartsOfLayer() : d_.vpp;
    if (bounding_) work = time;
    return time - std::min(HiddenShare(part) * time * (1 - 1 / parts), work);
  }
  void AddAccumulation();
  // Seconds of a collective of gradients or parameters. Other software uses
  // NCCL's algorithms.
  double DataTime(CollectiveKind kind, double bytes,
                  const GroupShape& group) const {
    return software_.own ? CollectiveTime(cluster_, kind, bytes, group)
                         : NcclTime(cluster_, kind, bytes, group);
  }
  // A T5 counts one encoder and one decoder layer as one layer.
  int PartsOfLayer() const { return a_.kind == ModelKind::kT5 ? 2 : 1; }
  // Layers, and parameters without experts, of the fullest rank.
  double RankLayers() const;
  double RankParameters() const;
  // Parameters of a rank, and the group of ranks with the same parameters.
  // Experts have smaller groups.
  struct Share {
    double parameters = 0;
    GroupShape group;
  };
  std::vector<Share> Shares() const;
  GroupShape DataGroup() const {
    return ShapeOfStride(cluster_, d_.tp, d_.dp * d_.cp);
  }

  const Architecture& a_;
  const Division& d_;
  const Cluster& cluster_;
  const Software& software_;
  const Setting setting_;
  std::vector<PartCost> stages_;
  std::vector<Pass> rank_work_;  // per microbatch, forward plus backward
  int busiest_ = 0;
  bool bounding_ = false;  // quantities that depend on the cut are lower bounds
  double transfer_ = 0;
  double gather_ = 0, reduce_ = 0;  // ZeRO collectives per layer and pass
  Prediction result_;
};

double Evaluation::RankLayers() const {
  if (bounding_) return double(a_.layers) / d_.pp;
  std::vector<double> ranks(d_.pp);
  for (int s = 0; s < d_.stages(); ++s)
    ranks[d_.RankOfStage(s)] += d_.LayersOfStage(a_.layers, s);
  return *std::max_element(ranks.begin(), ranks.end());
}

double Evaluation::RankParameters() const {
  double parameters = RankLayers() * LayerParameters(a_);
  if (a_.kind == ModelKind::kT5)
    parameters += a_.layers * DecoderLayerParameters(a_);
  parameters += EmbeddingParameters(a_);
  if (d_.SameEnds() && !a_.tied) parameters += double(a_.vocab) * a_.hidden;
  return parameters / d_.tp;
}

std::vector<Evaluation::Share> Evaluation::Shares() const {
  std::vector<Share> shares = {{RankParameters(), DataGroup()}};
  const int part = d_.ep * d_.etp;
  if (a_.experts > 0)
    shares.push_back({RankLayers() * ExpertParameters(a_) / part,
                      ShapeOfStride(cluster_, part, d_.expert_copies())});
  return shares;
}

void Evaluation::MakeStages() {
  const int stages = d_.stages();
  const PartCost layer = LayerCost(setting_);
  stages_.resize(stages);
  for (int s = 0; s < stages; ++s) {
    const double layers = d_.LayersOfStage(a_.layers, s);
    stages_[s].forward += layers * layer.forward;
    stages_[s].backward += layers * layer.backward;
    stages_[s].weights += layers * layer.weights;
  }
  if (a_.kind == ModelKind::kT5) {
    const PartCost decoder = DecoderLayerCost(setting_);
    stages_[0].forward += double(a_.layers) * decoder.forward;
    stages_[0].backward += double(a_.layers) * decoder.backward;
  }
  const PartCost embedding = EmbeddingCost(setting_);
  stages_.front().forward += embedding.forward;
  stages_.front().backward += embedding.backward;
  const PartCost head = HeadCost(setting_);
  stages_.back().forward += head.forward;
  stages_.back().backward += head.backward;
  stages_.back().weights += head.weights;
  AddAccumulation();
  AddSums();
  rank_work_.resize(d_.pp);
  for (int s = 0; s < stages; ++s) {
    rank_work_[d_.RankOfStage(s)] += stages_[s].forward;
    rank_work_[d_.RankOfStage(s)] += stages_[s].backward;
  }
  for (int r = 1; r < d_.pp; ++r)
    if (rank_work_[r].total() > rank_work_[busiest_].total()) busiest_ = r;
}

// Adds the f32 sums of gradients over microbatches to the stages.
void Evaluation::AddSums() {
  const Sums sums = SumsOf(setting_);
  for (int s = 0; s < d_.stages(); ++s)
    stages_[s].backward.elementwise +=
        double(d_.LayersOfStage(a_.layers, s)) * sums.layer;
  stages_.front().backward.elementwise +=
      sums.embedding + double(a_.layers) * sums.decoder;
  stages_.back().backward.elementwise += sums.head;
}

// Adds the accumulation of microbatch gradients. The first is not added to
// anything.
void Evaluation::AddAccumulation() {
  if (a_.frozen || (d_.zero >= 2 && !Defers()) ||
      software_.accumulation == Software::Accumulation::kAfterReduction)
    return;
  // Sums are f16 for f16 gradients, otherwise f32. A product reads the sum and
  // writes it instead of the gradient. A kernel reads both and writes the sum.
  const bool f16 = d_.precision == core::Precision::kF16;
  const bool product =
      software_.accumulation == Software::Accumulation::kProduct;
  const double bytes = product ? (f16 ? 2 : 6) : (f16 ? 6 : 10);
  const auto time = [&](double parameters) {
    return (1 - 1 / double(d_.microbatches())) *
           MemoryBoundTime(cluster_.device, bytes * parameters);
  };
  const double layer = time(double(LayerParameters(a_)) / d_.tp +
                            double(ExpertParameters(a_)) / (d_.ep * d_.etp));
  for (int s = 0; s < d_.stages(); ++s)
    stages_[s].backward.elementwise +=
        double(d_.LayersOfStage(a_.layers, s)) * layer;
  if (a_.kind == ModelKind::kT5)
    stages_.front().backward.elementwise +=
        double(a_.layers) * time(double(DecoderLayerParameters(a_)) / d_.tp);
  const double table = time(double(a_.vocab) * a_.hidden / d_.tp);
  stages_.front().backward.elementwise += table;
  if (!a_.tied || !d_.SameEnds()) stages_.back().backward.elementwise += table;
}

// ZeRO-3 gathers parameters before each pass of a layer. ZeRO-2 and 3 reduce
// the gradients of every microbatch.
void Evaluation::FindGathers() {
  if (d_.zero < 2 || Defers()) return;
  const double layers = double(a_.layers) / d_.pp * PartsOfLayer();
  const auto time = [&](CollectiveKind kind) {
    double sum = 0;
    // A layer has four large weights: q, k and v; the projection; two in the
    // MLP.
    const int pieces = software_.by_weight ? 4 : 1;
    for (const Share& share : Shares()) {
      const double bytes =
          share.parameters / layers * ElementBytes(d_.precision);
      sum += pieces * DataTime(kind, bytes / pieces, share.group);
      if (software_.by_weight)
        sum += pieces * share.group.members() * software_.dispatch /
               kKernelsOfLayer;
    }
    return sum;
  };
  if (d_.zero >= 3) gather_ = time(CollectiveKind::kAllGather);
  if (!a_.frozen) reduce_ = time(CollectiveKind::kReduceScatter);
}

// The part of these collectives that a pass over some layers does not hide.
Evaluation::Exposed Evaluation::ExposedOf(double layers,
                                          const PartCost& work) const {
  const auto exposed = [&](double sent, const Pass& pass) {
    return layers * sent -
           std::min(HiddenShare(software_.gather_overlap) * layers * sent,
                    pass.total());
  };
  // Recomputation gathers once more, unless backward keeps its parameters.
  const bool twice =
      software_.by_weight && d_.recompute == Recomputation::kFull;
  return {exposed(gather_, work.forward),
          exposed((twice ? 2 : 1) * gather_ + reduce_, work.backward)};
}

// The time at which each rank has finished its cells.
std::vector<double> Evaluation::TableEnds(int64_t microbatches,
                                          const core::Costs& costs) {
  const core::Timetable table = core::MakeTimetable(
      ScheduleOf(d_, static_cast<int>(microbatches)), costs);
  std::vector<double> ends;
  for (const std::vector<core::TimedCell>& cells : table.ranks)
    ends.push_back(cells.back().end);
  return ends;
}

void Evaluation::RunPipeline() {
  const int64_t m = d_.microbatches();
  if (d_.pp == 1) {
    const double sent =
        ExposedOf(double(a_.layers) * PartsOfLayer(), stages_[0]).both();
    result_.step = m * (rank_work_[0].total() + sent);
    result_.data += m * sent;
    return;
  }
  FindTransfer();
  core::Costs costs;
  costs.transfer = transfer_;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const PartCost& stage = stages_[s];
    const int index = static_cast<int>(s);
    const Exposed sent = ExposedOf(d_.LayersOfStage(a_.layers, index), stage);
    core::StageCost cost;
    cost.forward = stage.forward.total() + sent.forward;
    cost.backward = stage.backward.total() + sent.backward;
    if (d_.RankOfStage(index) == busiest_) result_.data += m * sent.both();
    cost.weight_grad = stage.weights;
    cost.input_grad = cost.backward - stage.weights;
    costs.stages.push_back(cost);
  }
  const int64_t shown = kRounds * d_.pp + m % d_.pp;
  std::vector<double> ends;
  if (m <= shown + d_.pp) {
    ends = TableEnds(m, costs);
  } else {
    const std::vector<double> less = TableEnds(shown, costs);
    ends = TableEnds(shown + d_.pp, costs);
    for (int r = 0; r < d_.pp; ++r)
      ends[r] += (ends[r] - less[r]) * double(m - shown - d_.pp) / d_.pp;
  }
  result_.step = *std::max_element(ends.begin(), ends.end());
}

void Evaluation::FindTransfer() {
  const double tokens = double(d_.microbatch) * a_.seq / d_.cp;
  const double bytes = tokens * a_.hidden * ElementBytes(d_.precision);
  const bool parts = d_.sequence_parallel || software_.scatters;
  transfer_ = TransferTime(cluster_, 0, d_.devices / d_.pp,
                           parts ? bytes / d_.tp : bytes);
  if (parts && !d_.sequence_parallel)
    transfer_ += CollectiveTime(cluster_, CollectiveKind::kAllGather, bytes,
                                ShapeOfStride(cluster_, 1, d_.tp));
}

// Lower bound on the pipeline time over all cuts. Before rank r computes, a
// microbatch passes all earlier stages, each with at least one layer, and
// passes them again at the end. Averaged over the ranks, half of that is
// waiting. If ranks have one stage each, a rank also waits for all the work
// before its own. The longest rank then takes least if each rank has as much
// more work as the ranks behind it wait longer.
double Evaluation::MinPipelineSeconds() const {
  const double m = d_.microbatches(), p = d_.pp;
  const bool zero_bubble = d_.schedule == PipelineSchedule::kZbH1 ||
                           d_.schedule == PipelineSchedule::kZbV;
  double work = 0;
  PartCost all;
  for (const PartCost& stage : stages_) {
    work += stage.forward.total() + stage.backward.total();
    all.forward += stage.forward;
    all.backward += stage.backward;
  }
  // Stages hide no more than all passes together.
  work += ExposedOf(double(a_.layers), all).both();
  // One microbatch passes all stages and returns. Delayed gradients of weights
  // do not count.
  double alone = work + 2 * (d_.stages() - 1) * transfer_;
  if (zero_bubble)
    for (const PartCost& stage : stages_) alone -= stage.weights;
  PartCost layer = LayerCost(setting_);
  layer.backward.elementwise += SumsOf(setting_).layer;
  const double passed = layer.forward.total() + transfer_ +
                        (zero_bubble ? 0 : layer.backward.total() + transfer_);
  double least = std::max(alone, m * work / p + (p - 1) / 2 * passed);
  const int64_t most = (a_.layers + d_.pp - 1) / d_.pp;
  least = std::max(least,
                   m * most * (layer.forward.total() + layer.backward.total()));
  if (d_.vpp == 1 && !zero_bubble)
    least = std::max(least, work / (1 - std::pow(1 - 1 / m, p)));
  return least;
}

void Evaluation::ReduceGradients() {
  const double trained = a_.frozen ? 0.01 : 1;
  double reduce = 0, gather = 0;
  for (const Share& share : Shares()) {
    const double parameters = trained * share.parameters;
    const auto of = [&](CollectiveKind kind, double bytes) {
      return DataTime(kind, parameters * bytes, share.group);
    };
    if (d_.zero == 0)
      reduce += of(CollectiveKind::kAllReduce, GradientBytes());
    else if (d_.zero == 1 || Defers())
      reduce += of(CollectiveKind::kReduceScatter, GradientBytes());
    if (d_.zero == 1 || d_.zero == 2 || (d_.zero == 3 && Defers()))
      gather += of(CollectiveKind::kAllGather, ElementBytes(d_.precision));
  }
  double time = reduce + gather;
  if (!software_.own) {
    Pass forward, backward;
    for (int s = 0; s < d_.stages(); ++s)
      if (d_.RankOfStage(s) == 0) {
        forward += stages_[s].forward;
        backward += stages_[s].backward;
      }
    time = ExposedBeside(reduce, software_.gradient_overlap, backward.total()) +
           ExposedBeside(gather, software_.parameter_overlap, forward.total());
  } else if (d_.zero < 2) {
    const double last = bounding_ ? time : rank_work_[0].total() * 2 / 3;
    time -= std::min(HiddenShare(software_.gradient_overlap) * time, last);
  }
  // The first and last stage sum the gradients of a tied embedding.
  if (!d_.SameEnds() && a_.tied)
    time += 2 * TransferTime(
                    cluster_, 0, d_.devices - d_.devices / d_.pp,
                    double(a_.vocab) * a_.hidden / d_.tp * GradientBytes());
  result_.data += time;
  result_.step += time;
}

void Evaluation::Update() {
  const double trained = a_.frozen ? 0.01 : 1;
  double parameters = 0;
  for (const Share& share : Shares())
    parameters +=
        trained * share.parameters / (d_.zero >= 1 ? share.group.members() : 1);
  result_.optimizer = UpdateTime(
      cluster_.device,
      (ElementBytes(d_.precision) < 4 ? kUpdateBytes : kPlainUpdateBytes) *
          parameters);
  // States travel from the host and back concurrently.
  if (d_.offload)
    result_.optimizer =
        std::max(result_.optimizer, OptimizerBytes(d_, software_) * parameters /
                                        cluster_.device.host_bandwidth);
  result_.other = software_.step;
  result_.step += result_.optimizer + result_.other;
}

void Evaluation::Account() {
  const double m = d_.microbatches();
  const Pass work = m * rank_work_[busiest_];
  result_.products = work.products;
  result_.attention = work.attention;
  result_.elementwise = work.elementwise;
  result_.host = work.host;
  result_.tensor = work.tensor;
  if (d_.pp > 1)
    result_.bubble = std::max(0.0, result_.step - work.total() - result_.data -
                                       result_.optimizer - result_.other);
  const std::pair<double, const char*> parts[] = {
      {result_.products, "matrix products"},
      {result_.attention, "attention"},
      {result_.elementwise, "memory bandwidth"},
      {result_.host, "launching kernels"},
      {result_.tensor, "tensor-parallel collectives"},
      {result_.data, "data-parallel collectives"},
      {result_.bubble, "pipeline bubble"},
      {result_.optimizer, "optimizer"}};
  result_.bound = std::max_element(std::begin(parts), std::end(parts))->second;
}

Prediction Evaluation::Run() {
  MakeStages();
  FindGathers();
  RunPipeline();
  ReduceGradients();
  Update();
  Account();
  return result_;
}

StepBound Evaluation::LowerBound() {
  MakeStages();
  bounding_ = d_.pp > 1;
  FindGathers();
  if (d_.pp == 1) {
    RunPipeline();
  } else {
    FindTransfer();
    result_.step = MinPipelineSeconds();
  }
  StepBound bound;
  bound.pipeline = result_.step;
  ReduceGradients();
  Update();
  bound.rest = result_.step - bound.pipeline;
  return bound;
}

}  // namespace

absl::StatusOr<Prediction> Evaluate(const Architecture& architecture,
                                    const Division& division,
                                    const Cluster& cluster,
                                    const Software& software) {
  absl::Status runs = CheckRuns(architecture, division, cluster);
  if (!runs.ok()) return runs;
  Prediction prediction =
      Evaluation(architecture, division, cluster, software).Run();
  prediction.memory = EvaluateMemory(architecture, division, software);
  prediction.last_rank_memory =
      EvaluateRankMemory(architecture, division, software, division.pp - 1)
          .total();
  prediction.fits = prediction.memory.total() <= cluster.device.room() &&
                    prediction.memory.host <= cluster.device.host_memory;
  if (!prediction.fits) prediction.bound = "memory";
  return prediction;
}

absl::StatusOr<StepBound> LeastStep(const Architecture& architecture,
                                    const Division& division,
                                    const Cluster& cluster,
                                    const Software& software) {
  Division any = division;
  any.cut.clear();
  absl::Status runs = CheckRuns(architecture, any, cluster);
  if (!runs.ok()) return runs;
  return Evaluation(architecture, any, cluster, software).LowerBound();
}

}  // namespace partita::planner
