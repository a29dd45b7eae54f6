// Plans and emits the loops over kernel results.
#include "compiler/kernels/emit_nest.h"

#include <set>

#include "compiler/kernels/emit_reduction.h"

namespace partita::kernels {

using namespace mlir;

namespace {

// Results of a trial, in terms of a position t in [0, size) of the result.
struct Findings {
  std::set<int64_t> boundaries;  // sizes at which t is divided
  // Reductions depend on t / row only: the last `row` elements share their
  // results.
  int64_t row = 1;
  // Reductions depend on all of t except the digit from axis_low to axis_high;
  // 0: there is no such digit.
  int64_t axis_low = 0;
  int64_t axis_high = 0;
  bool reduces_by_element = false;  // a reduction for each element
  // Accesses inside reductions that are contiguous across elements.
  double along_lanes = 0;
  // Accesses inside reductions that are far apart across elements, but
  // contiguous along the reduction.
  double across_lanes = 0;
};

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

void noteReduction(const IndexVector& index, const Symbol* t,
                   Findings& findings) {
  // The digits of t in `index`, as intervals [divisor, divisor * count).
  // Padding masks lanes of t.
  std::vector<std::pair<int64_t, int64_t>> used;
  for (const Index& i : index)
    for (const Term& term : i.terms())
      if (term.symbol == t || term.symbol->unmasked == t)
        used.push_back({term.divisor, term.modulus == 0
                                          ? t->extent
                                          : term.divisor * term.modulus});
  llvm::sort(used);
  int64_t covered = 1;
  if (used.empty() || used.front().first > 1) {
    int64_t row = used.empty() ? t->extent : used.front().first;
    findings.row = std::max(findings.row, row);
    findings.boundaries.insert(row);
    return;
  }
  for (auto [low, high] : used) {
    if (low > covered && findings.axis_low == 0) {
      findings.axis_low = covered;
      findings.axis_high = low;
      findings.boundaries.insert({covered, low});
    }
    covered = std::max(covered, high);
  }
  if (covered < t->extent && findings.axis_low == 0) {
    findings.axis_low = covered;
    findings.axis_high = t->extent;
    findings.boundaries.insert(covered);
  }
  findings.reduces_by_element |= findings.axis_low == 0;
}

void noteAccess(const Index& access, const Symbol* t, Findings& findings) {
  double weight = 1;
  bool reduces = false, dense_reduction = false, depends = false, dense = false;
  for (const Term& term : access.terms()) {
    if (term.symbol != t) {
      reduces = true;
      weight *= term.count();
      dense_reduction |=
          term.scale == 1 && term.divisor == 1 && term.count() >= 8;
    } else if (term.divisor == 1) {
      depends = true;
      dense |= term.scale == 1;
    }
  }
  if (!reduces || !depends) return;
  if (dense) findings.along_lanes += weight;
  if (!dense && dense_reduction) findings.across_lanes += weight;
}

FailureOr<Findings> investigate(Emitter& emitter, ArrayRef<Output> outputs,
                                int64_t size) {
  Findings findings;
  Symbol all;
  all.extent = size;
  all.lanes = emitter.nativeLanes();
  const Symbol* t = nullptr;
  auto emit = [&]() -> FailureOr<Values> {
    all.value = emitter.indexConstant(0);
    return emitter.withSymbol(
        all, {}, [&](const Symbol* symbol, ValueRange) -> FailureOr<Values> {
          t = symbol;
          for (const Output& output : outputs)
            if (failed(emitter.element(
                    output.value,
                    emitter.delinearize(Index(t), shapeOf(output.value)))))
              return failure();
          return Values();
        });
  };
  FailureOr<Emitter::Recording> recording = emitter.investigate(emit);
  if (failed(recording)) return failure();
  for (int64_t size : recording->boundaries(t))
    findings.boundaries.insert(size);
  for (const Output& output : outputs)
    if (output.row != 0) findings.boundaries.insert(output.row);
  for (const IndexVector& reduction : recording->reductions)
    noteReduction(reduction, t, findings);
  for (const Index& access : recording->accesses)
    noteAccess(access, t, findings);
  return findings;
}

}  // namespace

int64_t NestPlan::range() const {
  int64_t range = chunks();
  for (const Dimension& dim : llvm::drop_end(dims, lanes == 0 ? 0 : 1))
    if (dim.parallel) range *= dim.size;
  return range;
}

// Lanes of a loop over elements that each walk down a column. Several registers
// of accumulators make the part of a row long enough for the memory system.
static int64_t widestLanes(ArrayRef<Output> outputs, int64_t size,
                           int64_t native, bool computes_much) {
  int64_t registers = computes_much ? 4 : 16;
  for (const Output& output : outputs)
    if (output.buffer.element.getIntOrFloatBitWidth() > 32)
      registers = std::min<int64_t>(registers, 8);
  for (; registers > 1; registers /= 2) {
    int64_t lanes = registers * native;
    if (size >= 8 * lanes || (size % lanes == 0 && lanes <= 4 * native))
      return lanes;
  }
  return native;
}

FailureOr<NestPlan> planNest(Emitter& emitter, ArrayRef<Output> outputs) {
  int64_t size = product(shapeOf(outputs.front().value)),
          native = emitter.nativeLanes();
  FailureOr<Findings> findings = investigate(emitter, outputs, size);
  if (failed(findings)) return failure();
  NestPlan plan;
  bool by_row = findings->row > 1;
  bool by_axis = !by_row && findings->axis_low > 0;
  bool reduces = findings->reduces_by_element;
  SmallVector<int64_t> boundaries(findings->boundaries.begin(),
                                  findings->boundaries.end());
  SmallVector<int64_t> sizes = chainOfSizes(boundaries, size);
  // If rows are shorter than half a vector, elements of several rows share
  // vectors.
  if (!by_row && !by_axis && !reduces && sizes.front() * 2 <= native)
    sizes = {size};
  int64_t inner = 1;
  for (int64_t outer : sizes) {
    bool parallel = by_row ? inner >= findings->row
                           : !by_axis || inner < findings->axis_low ||
                                 inner >= findings->axis_high;
    plan.dims.insert(plan.dims.begin(), {outer / inner, parallel});
    inner = outer;
  }
  int64_t last = plan.dims.back().size;
  bool one_by_one =
      size == 1 || (reduces && findings->across_lanes > findings->along_lanes);
  if (one_by_one) return plan;
  plan.lanes = native;
  plan.lanes_outside = by_axis;
  bool teams = emitter.team() > 1;
  if (by_row && findings->row >= last) {
    plan.chunk = last;  // the row's reductions are computed once
    return plan;
  }
  if ((reduces || by_axis) && !teams)
    plan.lanes = widestLanes(outputs, last, native, by_axis);
  // Many small items for the range, each long enough for its loop.
  int64_t least = teams                ? plan.lanes * emitter.team()
                  : reduces || by_axis ? plan.lanes
                                       : 2048;
  plan.chunk = std::min((last + plan.lanes - 1) / plan.lanes * plan.lanes,
                        (least + plan.lanes - 1) / plan.lanes * plan.lanes);
  return plan;
}

namespace {

class NestEmitter {
 public:
  NestEmitter(Emitter& emitter, ArrayRef<Output> outputs, const NestPlan& plan)
      : emitter_(emitter), outputs_(outputs), plan_(plan) {
    SmallVector<int64_t> sizes;
    for (const NestPlan::Dimension& dim : plan.dims) sizes.push_back(dim.size);
    strides_ = rowMajorStrides(sizes);
  }

  // Emits one item of the range.
  LogicalResult emitItem(const Symbol* item) {
    std::tie(rest_, chunk_) = emitter_.split(Index(item), plan_.chunks());
    size_t outer = plan_.dims.size() - (plan_.lanes == 0 ? 0 : 1);
    SmallVector<int64_t> sizes;
    SmallVector<size_t> inner;
    Index position;
    for (size_t i = 0; i < outer; ++i) {
      if (plan_.dims[i].parallel)
        sizes.push_back(plan_.dims[i].size);
      else
        inner.push_back(i);
    }
    IndexVector at = emitter_.delinearize(rest_, sizes);
    for (size_t i = 0, next = 0; i < outer; ++i)
      if (plan_.dims[i].parallel)
        position = position + at[next++] * strides_[i];
    if (plan_.lanes == 0)
      return emitLoops(inner, position,
                       [&](const Index& p) { return emitStores(p); });
    if (!plan_.lanes_outside)
      return emitLoops(inner, position, [&](const Index& p) {
        return emitLanes(p, [&](const Index& q) { return emitStores(q); });
      });
    return emitLanes(position, [&](const Index& p) {
      return emitLoops(inner, p, [&](const Index& q) { return emitStores(q); });
    });
  }

 private:
  using Next = llvm::function_ref<LogicalResult(const Index&)>;

  LogicalResult emitLoops(ArrayRef<size_t> dims, const Index& position,
                          Next next) {
    if (dims.empty()) return next(position);
    return emitter_.loop(
        plan_.dims[dims.front()].size, {},
        [&](const Symbol* symbol, ValueRange) -> FailureOr<Values> {
          if (failed(emitLoops(
                  dims.drop_front(),
                  position + Index(symbol) * strides_[dims.front()], next)))
            return failure();
          return Values();
        });
  }

  LogicalResult emitLanes(const Index& position, Next next) {
    auto body = [&](const Symbol* symbol, ValueRange) -> FailureOr<Values> {
      if (failed(next(position + Index(symbol)))) return failure();
      return Values();
    };
    int64_t size = plan_.dims.back().size;
    if (plan_.chunks() == 1)
      return emitter_.laneLoop(size, plan_.lanes, {}, body);
    ImplicitLocOpBuilder& builder = emitter_.builder();
    Value begin =
        emitter_.number(chunk_ * plan_.chunk, builder.getIndexType()).value;
    Value end = emitter_
                    .number(chunk_ * plan_.chunk + Index(plan_.chunk),
                            builder.getIndexType())
                    .value;
    if (size % plan_.chunk != 0) end = emitter_.smaller(end, size);
    return emitter_.laneLoop(begin, end, size, plan_.chunk, plan_.lanes, {},
                             body);
  }

  LogicalResult emitStores(const Index& position) {
    SmallVector<Lanes> elements;
    for (const Output& output : outputs_) {
      FailureOr<Lanes> element = emitter_.element(
          output.value, emitter_.delinearize(position, shapeOf(output.value)));
      if (failed(element)) return failure();
      elements.push_back(*element);
    }
    for (auto [output, element] : llvm::zip_equal(outputs_, elements))
      emitter_.store(output.buffer, placeOf(output, position), element);
    return success();
  }

  Index placeOf(const Output& output, const Index& position) {
    if (output.row == 0) return position + Index(output.begin);
    auto [row, rest] = emitter_.split(position, output.row);
    return row * output.stride + rest + Index(output.begin);
  }

  Emitter& emitter_;
  ArrayRef<Output> outputs_;
  const NestPlan& plan_;
  SmallVector<int64_t> strides_;
  Index rest_, chunk_;
};

}  // namespace

LogicalResult emitNest(Emitter& emitter, ArrayRef<Output> outputs,
                       const NestPlan& plan, Value begin, Value end) {
  NestEmitter nest(emitter, outputs, plan);
  return emitter.loop(begin, end, plan.range(), {},
                      [&](const Symbol* item, ValueRange) -> FailureOr<Values> {
                        if (failed(nest.emitItem(item))) return failure();
                        return Values();
                      });
}

}  // namespace partita::kernels
