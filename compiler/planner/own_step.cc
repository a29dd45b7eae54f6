// Main as a sketch of calls: what each leaves lives until the last that reads
// it, as compiler/memory plans it.
#include "compiler/planner/own_step.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "compiler/core/schedule_generators.h"
#include "compiler/planner/own_layers.h"

namespace partita::planner {
namespace {

using Value = ProgramSketch::Value;

// Names the gradient of a table that is the first rank's.
constexpr int kOfTable = std::numeric_limits<int>::min();

double Total(const std::vector<double>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 0.0);
}

// Of what has no pipeline: as many as small models have gradients in flight of.
constexpr int kShown = 8;

// The cells of `rank`; of a schedule that repeats itself only so many.
std::vector<core::Cell> CellsOf(const Division& d, int rank) {
  const int m = static_cast<int>(d.microbatches());
  if (d.pp > 1) {
    const bool all = d.schedule == PipelineSchedule::kGpipe || m <= 4 * d.pp;
    const int shown = all ? m : 3 * d.pp + m % d.pp;
    return ScheduleOf(d, shown).cells[rank];
  }
  std::vector<core::Cell> cells;
  for (int k = 0; k < std::min(m, kShown); ++k) {
    cells.push_back({core::Work::kForward, 0, k});
    cells.push_back({core::Work::kBackward, 0, k});
  }
  return cells;
}

// What a function is to its caller.
struct Function {
  explicit Function(const OwnPart& part)
      : forward(part.forward.FrameBytes()),
        backward(part.backward.FrameBytes()),
        saved(part.saved),
        output(part.output) {}
  double forward, backward, saved, output;
};

class Main {
 public:
  Main(const Architecture& a, const Division& d, int rank)
      : a_(a),
        d_(d),
        rank_(rank),
        element_(BytesOf(d.precision)),
        layer_(OwnLayer(a, d)),
        embedding_(OwnEmbedding(a, d)),
        head_(OwnHead(a, d)),
        layer_parameters_(OwnLayerParameters(a, d)),
        main_(element_, d.precision) {
    for (int s = 0; s < d.stages(); ++s)
      if (d.RankOfStage(s) == rank) layers_ += d.LayersOfStage(a.layers, s);
    first_ = d.RankOfStage(0) == rank;
    last_ = d.RankOfStage(d.stages() - 1) == rank;
    table_ = OwnEmbeddingParameters(a, d)[0];
  }

  double Parameters() const {
    double parameters = layers_ * Total(layer_parameters_);
    if (first_) parameters += Total(OwnEmbeddingParameters(a_, d_));
    if (last_) parameters += Total(OwnHeadParameters(a_, d_));
    return parameters;
  }
  // Of ids and targets.
  double Ports() const {
    const double tokens = double(d_.microbatches()) * d_.microbatch * a_.seq;
    return (first_ + last_) * 8.0 * tokens / (d_.sequence_parallel ? d_.tp : 1);
  }

  double Arena() {
    if (last_ && !first_ && a_.tied) {
      const Value table = main_.Call(0, {}, {element_ * table_})[0];
      ends_.push_back(table);
    }
    const std::vector<core::Cell> cells = CellsOf(d_, rank_);
    for (const core::Cell& cell : cells)
      shown_ = std::max<int64_t>(shown_, cell.microbatch + 1);
    for (const core::Cell& cell : cells) {
      closing_ = &cell == &cells.back();
      if (cell.work == core::Work::kForward)
        Forward(cell);
      else if (cell.work != core::Work::kWeightGrad)
        Backward(cell);
    }
    while (!scattered_.empty()) Settle();
    Pack();
    main_.Call(0, sent_, {});
    Finish();
    main_.Call(0, ends_, {});
    return main_.FrameBytes();
  }

 private:
  // What a microbatch leaves on a stage.
  struct Kept {
    std::vector<Value> inputs, saved;  // by layer; then the head's
    Value gradient = -1;
  };
  // Of a stage: the parameter's number, negative of what is no layer's.
  using Name = std::pair<int, int>;
  struct Scattered {
    Name name;
    std::vector<Value> input;
    Value output = -1;
    double bytes = 0;  // in flight
    double size = 0;   // elements of what it gives
  };
  struct Gradient {
    std::vector<Value> values;
    int times = 0;
  };

  bool IsLast(int stage) const { return stage == d_.stages() - 1; }

  void Forward(const core::Cell& cell) {
    Kept& kept = kept_[{cell.stage, cell.microbatch}];
    Value x = main_.Call(cell.stage == 0 ? embedding_.forward : 0, {},
                         {layer_.output})[0];
    const int64_t layers = d_.LayersOfStage(a_.layers, cell.stage);
    for (int64_t l = 0; l < layers; ++l) {
      kept.inputs.push_back(x);
      const std::vector<Value> made =
          main_.Call(layer_.forward, {x}, {layer_.output, layer_.saved});
      x = made[0];
      kept.saved.push_back(made[1]);
    }
    kept.inputs.push_back(x);
    if (IsLast(cell.stage))
      kept.saved.push_back(main_.Call(head_.forward, {x}, {head_.saved})[0]);
    else
      main_.Call(0, {x}, {});
  }

  void Backward(const core::Cell& cell) {
    const Kept kept = kept_[{cell.stage, cell.microbatch}];
    const int64_t layers = d_.LayersOfStage(a_.layers, cell.stage);
    Value gradient;
    last_function_ = false;
    if (IsLast(cell.stage)) {
      const std::vector<double> own = OwnHeadParameters(a_, d_);
      std::vector<double> writes = {layer_.output,
                                    a_.tied ? element_ * table_ : 0};
      for (const double size : own) writes.push_back(element_ * size);
      const std::vector<Value> made = main_.Call(
          head_.backward, {kept.inputs.back(), kept.saved.back()}, writes);
      gradient = made[0];
      Add({cell.stage, -1}, {made.begin() + 2, made.end()}, own);
      of_table_ = made[1];
      if (a_.tied && !first_) Sum({cell.stage, kOfTable}, of_table_, table_);
    } else {
      gradient = main_.Call(0, {}, {layer_.output})[0];
    }
    for (int64_t l = layers; l-- > 0;) {
      std::vector<double> writes = {layer_.output};
      for (const double size : layer_parameters_)
        writes.push_back(element_ * size);
      const std::vector<Value> made = main_.Call(
          layer_.backward, {kept.inputs[l], kept.saved[l], gradient}, writes);
      gradient = made[0];
      last_function_ = l == 0 && cell.stage > 0;
      Add({cell.stage, static_cast<int>(l)}, {made.begin() + 1, made.end()},
          layer_parameters_);
    }
    if (cell.stage == 0)
      BackThroughEmbedding(gradient);
    else
      main_.Call(0, {gradient}, {});
  }

  void BackThroughEmbedding(Value gradient) {
    const std::vector<double> own = OwnEmbeddingParameters(a_, d_);
    last_function_ = true;
    std::vector<double> writes;
    for (const double size : own) writes.push_back(element_ * size);
    std::vector<Value> made =
        main_.Call(embedding_.backward, {gradient}, writes);
    // With the head's, where that is on the same device.
    const bool bucketed =
        d_.dp > 1 && d_.zero < 2 && element_ * table_ < kBucketBytes;
    if (a_.tied && last_ && bucketed && d_.microbatches() == 1)
      bucket_.push_back(of_table_);  // added up as it is packed
    else if (a_.tied && last_)
      made[0] = main_.Call(0, {made[0], of_table_}, {element_ * table_})[0];
    for (size_t i = 0; i < own.size(); ++i)
      Add({0, -3 - static_cast<int>(i)}, {made[i]}, {own[i]});
  }

  // ZeRO-2: a layer's gradients leave as soon as they are there; what is in
  // flight is awaited when it is too much, what is too much alone at once.
  void Scatter(Name name, const std::vector<Value>& values,
               const std::vector<double>& sizes) {
    const double all = element_ * Total(sizes), own = all / d_.dp;
    std::vector<Value> input = values;
    if (values.size() > 1) input = main_.Call(0, values, {all});
    const Value output = main_.Call(0, input, {own})[0];
    if (all + own > kMostInFlight) {
      Sum(name, output, Total(sizes) / d_.dp);
      return;
    }
    scattered_.push_back(
        {name, input, output, all + own, Total(sizes) / d_.dp});
    double held = 0;
    for (const Scattered& each : scattered_) held += each.bytes;
    while (!scattered_.empty() && held > kMostInFlight) {
      held -= scattered_.front().bytes;
      Settle();
    }
  }
  void Settle() {
    const Scattered first = scattered_.front();
    scattered_.pop_front();
    main_.Call(0, first.input, {});
    Sum(first.name, first.output, first.size);
  }

  // Gradients of a part's parameters.
  void Add(Name name, const std::vector<Value>& values,
           const std::vector<double>& sizes) {
    if (d_.zero >= 2 && d_.dp > 1) {
      Scatter(name, values, sizes);
      return;
    }
    for (size_t i = 0; i < values.size(); ++i)
      Sum({name.first, 64 * name.second + static_cast<int>(i)}, values[i],
          sizes[i]);
  }

  // Of the second microbatch on gradients are summed, in f32, tensor by tensor:
  // what both take is what the sum takes. The last function's sums are computed
  // as they are packed.
  void Sum(Name name, Value value, double size) {
    const int64_t m = d_.microbatches();
    Gradient& gradient = gradients_[name];
    if (++gradient.times == 1)
      gradient.values = {value};
    else if (closing_ && last_function_ && d_.dp > 1 && d_.zero < 2 &&
             kSumBytes * size < kBucketBytes)
      gradient.values.push_back(value);
    else if (gradient.times == 2)
      gradient.values.push_back(
          main_.Call(0, {value}, {(kSumBytes - element_) * size})[0]);
    else
      main_.Call(0, {value}, {});
    if (gradient.times < std::min<int64_t>(m, shown_)) return;
    if (name.second == kOfTable) {
      sent_ = gradient.values;
      return;
    }
    if (d_.dp == 1 || d_.zero >= 2)
      ends_.insert(ends_.end(), gradient.values.begin(), gradient.values.end());
    else
      Reduce(gradient.values, (m > 1 ? kSumBytes : element_) * size);
  }

  // Small tensors share a bucket, which is packed, reduced, and cut up when the
  // next one starts.
  void Reduce(const std::vector<Value>& values, double bytes) {
    if (bytes >= kBucketBytes) {
      Start(values, bytes);
      return;
    }
    bucket_.insert(bucket_.end(), values.begin(), values.end());
    bucket_bytes_ += bytes;
    if (bucket_bytes_ >= kBucketBytes) Pack();
  }
  void Pack() {
    if (bucket_.empty()) return;
    const std::vector<Value> packed = main_.Call(0, bucket_, {bucket_bytes_});
    Start(packed, bucket_bytes_);
    packed_ = true;
    bucket_.clear();
    bucket_bytes_ = 0;
  }
  void Start(std::vector<Value> input, double bytes) {
    Finish();
    flight_ = std::move(input);
    flight_bytes_ = bytes / (d_.zero >= 1 ? d_.dp : 1);
    flight_.push_back(main_.Call(0, flight_, {flight_bytes_})[0]);
    packed_ = false;
  }
  void Finish() {
    if (flight_.empty()) return;
    // Awaited, then cut up.
    main_.Call(0, flight_, {});
    const Value sum = flight_.back();
    ends_.push_back(packed_ ? main_.Call(0, {sum}, {flight_bytes_})[0] : sum);
    flight_.clear();
  }

  const Architecture& a_;
  const Division& d_;
  const int rank_;
  const double element_;
  const Function layer_, embedding_, head_;
  const std::vector<double> layer_parameters_;
  ProgramSketch main_;
  bool first_ = false, last_ = false;
  double layers_ = 0, table_ = 0;
  std::map<std::pair<int, int>, Kept> kept_;  // by stage and microbatch
  std::map<Name, Gradient> gradients_;
  std::vector<Value> bucket_, flight_;
  double bucket_bytes_ = 0, flight_bytes_ = 0;
  bool packed_ = false;
  std::deque<Scattered> scattered_;
  Value of_table_ = -1;
  int64_t shown_ = 0;
  // Whether it is the last cell, and the last of a cell's functions.
  bool closing_ = false, last_function_ = false;
  std::vector<Value> sent_;  // the table's gradient, to the first rank
  std::vector<Value> ends_;  // what lives until the update
};

}  // namespace

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

MemoryUse OwnMemory(const Architecture& a, const Division& d, int rank) {
  Main main(a, d, rank);
  const bool narrow = BytesOf(d.precision) < 4;
  const double parameters = main.Parameters();
  MemoryUse use;
  use.parameters = BytesOf(d.precision) * parameters / (d.zero >= 3 ? d.dp : 1);
  use.optimizer = (narrow ? 12 : 8) * parameters / (d.zero >= 1 ? d.dp : 1);
  const double arena = main.Arena();
  const double sums = d.microbatches() > 1 ? kSumBytes : BytesOf(d.precision);
  use.gradients = std::min(arena, sums * parameters / (d.zero >= 2 ? d.dp : 1));
  use.activations = arena - use.gradients + main.Ports();
  return use;
}

}  // namespace partita::planner
