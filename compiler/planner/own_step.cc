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
#include "compiler/planner/own_writer.h"

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
    return ScheduleOf(d, ShownOf(d)).cells[rank];
  }
  std::vector<core::Cell> cells;
  for (int k = 0; k < std::min(m, kShown); ++k) {
    cells.push_back({core::Work::kForward, 0, k});
    cells.push_back({core::Work::kBackward, 0, k});
  }
  return cells;
}

OwnFunction FunctionOf(const OwnPart& part) {
  return {part.forward.FrameBytes(), part.backward.FrameBytes(), part.saved,
          part.output};
}

class Main {
 public:
  Main(const OwnSizes& sizes, const Architecture& a, const Division& d,
       int rank)
      : sizes_(sizes),
        a_(a),
        d_(d),
        element_(BytesOf(d.precision)),
        layer_(sizes.layer),
        embedding_(sizes.embedding),
        head_(sizes.head),
        layer_parameters_(sizes.layer_parameters),
        table_(sizes.embedding_parameters[0]),
        rank_(rank),
        main_(element_, d.precision) {
    first_ = d.RankOfStage(0) == rank;
    last_ = d.RankOfStage(d.stages() - 1) == rank;
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
      switch (cell.work) {
        case core::Work::kForward:
          Forward(cell);
          break;
        case core::Work::kBackward:
          Backward(cell);
          break;
        case core::Work::kInputGrad:
          InputGradient(cell);
          break;
        case core::Work::kWeightGrad:
          WeightGradient(cell);
          break;
      }
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
    // Of each layer's output, then of the embedding's, until parameters'
    // gradients are made of them.
    std::vector<Value> gradients, pending;
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
      gradient = HeadBackward(cell.stage, kept, {layer_.output})[0];
    } else {
      gradient = main_.Call(0, {}, {layer_.output})[0];
    }
    for (int64_t l = layers; l-- > 0;) {
      gradient = LayerBackward(cell.stage, l,
                               {kept.inputs[l], kept.saved[l], gradient},
                               {layer_.output})[0];
    }
    if (cell.stage == 0)
      BackThroughEmbedding(gradient);
    else
      main_.Call(0, {gradient}, {});
  }

  // Gives `writes`, and gradients of parameters.
  std::vector<Value> HeadBackward(int stage, const Kept& kept,
                                  std::vector<double> writes) {
    const std::vector<double>& own = sizes_.head_parameters;
    const size_t given = writes.size();
    writes.push_back(a_.tied ? element_ * table_ : 0);
    for (const double size : own) writes.push_back(element_ * size);
    const std::vector<Value> made = main_.Call(
        head_.backward, {kept.inputs.back(), kept.saved.back()}, writes);
    Add({stage, -1}, {made.begin() + given + 1, made.end()}, own);
    of_table_ = made[given];
    if (a_.tied && !first_) Sum({stage, kOfTable}, of_table_, table_);
    return made;
  }
  std::vector<Value> LayerBackward(int stage, int64_t layer,
                                   std::vector<Value> reads,
                                   std::vector<double> writes) {
    const size_t given = writes.size();
    for (const double size : layer_parameters_)
      writes.push_back(element_ * size);
    const std::vector<Value> made =
        main_.Call(layer_.backward, std::move(reads), writes);
    last_function_ = layer == 0 && stage > 0;
    Add({stage, static_cast<int>(layer)}, {made.begin() + given, made.end()},
        layer_parameters_);
    return made;
  }

  // Where gradients of parameters come later, what they are made of stays.
  void InputGradient(const core::Cell& cell) {
    Kept& kept = kept_[{cell.stage, cell.microbatch}];
    const int64_t layers = d_.LayersOfStage(a_.layers, cell.stage);
    kept.gradients.resize(layers + 1);
    kept.pending.resize(layers);
    Value gradient;
    if (IsLast(cell.stage))
      gradient =
          main_.Call(head_.backward, {kept.inputs.back(), kept.saved.back()},
                     {layer_.output})[0];
    else
      gradient = main_.Call(0, {}, {layer_.output})[0];
    for (int64_t l = layers; l-- > 0;) {
      kept.gradients[l + 1] = gradient;
      const std::vector<Value> made =
          main_.Call(layer_.backward, {kept.inputs[l], kept.saved[l], gradient},
                     {layer_.output, sizes_.pending});
      gradient = made[0];
      kept.pending[l] = made[1];
    }
    kept.gradients[0] = gradient;
    if (cell.stage > 0) main_.Call(0, {gradient}, {});
  }
  void WeightGradient(const core::Cell& cell) {
    const Kept& kept = kept_[{cell.stage, cell.microbatch}];
    last_function_ = false;
    if (IsLast(cell.stage)) HeadBackward(cell.stage, kept, {});
    for (int64_t l = d_.LayersOfStage(a_.layers, cell.stage); l-- > 0;)
      LayerBackward(cell.stage, l,
                    {kept.inputs[l], kept.saved[l], kept.gradients[l + 1],
                     kept.pending[l]},
                    {});
    if (cell.stage == 0) BackThroughEmbedding(kept.gradients[0]);
  }

  void BackThroughEmbedding(Value gradient) {
    const std::vector<double>& own = sizes_.embedding_parameters;
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

  const OwnSizes& sizes_;
  const Architecture& a_;
  const Division& d_;
  const double element_;
  const OwnFunction &layer_, &embedding_, &head_;
  const std::vector<double>& layer_parameters_;
  const double table_;
  const int rank_;
  ProgramSketch main_;
  bool first_ = false, last_ = false;
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

int ShownOf(const Division& d) {
  const int m = static_cast<int>(d.microbatches());
  switch (d.schedule) {
    case PipelineSchedule::kGpipe:
      return m;
    case PipelineSchedule::kZbH1:
    case PipelineSchedule::kZbV:
      return std::min(m, 2 * d.pp + 4);
    case PipelineSchedule::k1F1B:
      break;
  }
  return m <= 4 * d.pp ? m : 3 * d.pp + m % d.pp;
}

OwnTotals::OwnTotals(const Architecture& a, const Division& d)
    : layer(Total(OwnLayerParameters(a, d))),
      embedding(Total(OwnEmbeddingParameters(a, d))),
      head(Total(OwnHeadParameters(a, d))) {}

OwnSizes::OwnSizes(const Architecture& a, const Division& d)
    : layer(FunctionOf(OwnLayer(a, d))),
      embedding(FunctionOf(OwnEmbedding(a, d))),
      head(FunctionOf(OwnHead(a, d))),
      totals(a, d),
      layer_parameters(OwnLayerParameters(a, d)),
      embedding_parameters(OwnEmbeddingParameters(a, d)),
      head_parameters(OwnHeadParameters(a, d)) {
  const Sizes s(a, d);
  pending = (s.gated ? 2 : 1) * s.middle;
}

MemoryUse OwnStates(const OwnTotals& totals, const Architecture& a,
                    const Division& d, int rank, double layers) {
  const bool first = d.RankOfStage(0) == rank;
  const bool last = d.RankOfStage(d.stages() - 1) == rank;
  double parameters = layers * totals.layer;
  if (first) parameters += totals.embedding;
  if (last) parameters += totals.head;
  const double element = BytesOf(d.precision);
  const double sums = d.microbatches() > 1 ? kSumBytes : element;
  const double tokens = double(d.microbatches()) * d.microbatch * a.seq;
  MemoryUse use;
  use.parameters = element * parameters / (d.zero >= 3 ? d.dp : 1);
  use.optimizer =
      (element < 4 ? 12 : 8) * parameters / (d.zero >= 1 ? d.dp : 1);
  use.gradients = sums * parameters / (d.zero >= 2 ? d.dp : 1);
  // Ids and targets.
  use.activations =
      (first + last) * 8.0 * tokens / (d.sequence_parallel ? d.tp : 1);
  return use;
}

MemoryUse OwnMemory(const OwnSizes& sizes, const Architecture& a,
                    const Division& d, int rank) {
  double layers = 0;
  for (int chunk = 0; chunk < d.vpp; ++chunk)
    layers += d.LayersOfStage(a.layers, d.StageOfRank(rank, chunk));
  MemoryUse use = OwnStates(sizes.totals, a, d, rank, layers);
  const double arena = Main(sizes, a, d, rank).Arena();
  use.gradients = std::min(arena, use.gradients);
  use.activations += arena - use.gradients;
  return use;
}

}  // namespace partita::planner
