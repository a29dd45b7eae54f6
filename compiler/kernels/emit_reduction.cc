// Emits reductions: loops over the reduced dimensions, accumulators in
// registers.
#include "compiler/kernels/emit_reduction.h"

#include "compiler/kernels/emit_team.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {

using namespace mlir;

namespace {

using ElementFn = llvm::function_ref<FailureOr<Lanes>(ArrayRef<Index>)>;

class ReductionEmitter {
 public:
  ReductionEmitter(Emitter& emitter, const ReductionLoops& reduction,
                   ElementFn element)
      : emitter_(emitter), reduction_(reduction), element_(element) {}

  FailureOr<Lanes> emit() {
    int64_t size = product(reduction_.sizes);
    Value neutral = neutralElement(emitter_, reduction_.kind, reduction_.type);
    if (size == 0) return Lanes{neutral, 0};
    FailureOr<Values> result;
    bool accepted = true;
    if (emitter_.isInvestigating() || reduction_.sizes.size() <= 1) {
      result = emitLoops({size});
    } else {
      SmallVector<int64_t> boundaries;
      auto emit = [&] { return emitLoops({size}); };
      auto accept = [&](const Emitter::Recording& recording) {
        boundaries = recording.boundaries(flat_);
        return boundaries.empty();
      };
      result = emitter_.attempt(emit, accept, accepted);
      if (!accepted && succeeded(result))
        result = emitLoops(loopSizes(boundaries, size));
    }
    if (failed(result)) return failure();
    Value value = result->front();
    if (reduction_.lanes) return Lanes{value, reduction_.lanes->lanes};
    value = combineLanes(emitter_, reduction_.kind, value);
    // Each thread of a team has summed its own part of the innermost loop.
    if (emitter_.sharesLoops())
      value = combineTeam(emitter_, reduction_.kind, value);
    return Lanes{value, 0};
  }

 private:
  // Loop sizes, outermost first.
  static SmallVector<int64_t> loopSizes(ArrayRef<int64_t> boundaries,
                                        int64_t size) {
    SmallVector<int64_t> loops;
    int64_t inner = 1;
    for (int64_t outer : chainOfSizes(boundaries, size)) {
      loops.insert(loops.begin(), outer / inner);
      inner = outer;
    }
    return loops;
  }

  FailureOr<Values> emitLoops(ArrayRef<int64_t> loops) {
    loops_.assign(loops.begin(), loops.end());
    strides_ = rowMajorStrides(loops_);
    width_ =
        reduction_.lanes ? reduction_.lanes->lanes : chooseLanes(loops_.back());
    Value neutral = neutralElement(emitter_, reduction_.kind, reduction_.type);
    Values init = {emitter_.splat({neutral, 0}, width_)};
    return emitFrom(0, Index(), init);
  }

  FailureOr<Values> emitFrom(size_t loop, const Index& position,
                             ValueRange carried) {
    bool innermost = loop + 1 == loops_.size();
    auto body = [&](const Symbol* symbol,
                    ValueRange inside) -> FailureOr<Values> {
      if (loop == 0) flat_ = symbol;
      Index next = position + Index(symbol) * strides_[loop];
      return innermost ? accumulate(next, symbol->mask, inside.front())
                       : emitFrom(loop + 1, next, inside);
    };
    if (innermost && !reduction_.lanes)
      return emitter_.laneLoop(loops_[loop], width_, carried, body);
    return emitter_.loop(loops_[loop], carried, body);
  }

  FailureOr<Values> accumulate(const Index& position, Value mask,
                               Value accumulator) {
    FailureOr<Lanes> element =
        element_(emitter_.delinearize(position, reduction_.sizes));
    if (failed(element)) return failure();
    Value value = emitter_.splat(*element, width_);
    if (mask) {
      Value neutral = emitter_.splat(
          {neutralElement(emitter_, reduction_.kind, reduction_.type), 0},
          width_);
      value = arith::SelectOp::create(emitter_.builder(), mask, value, neutral);
    }
    return Values{combine(emitter_, reduction_.kind, accumulator, value)};
  }

  // Several registers hide the latency of the accumulation.
  int64_t chooseLanes(int64_t size) {
    int64_t native = emitter_.nativeLanes();
    if (emitter_.team() > 1) return native;  // other teams hide it
    for (int64_t wide : {4 * native, 2 * native}) {
      int64_t rounded = (size + wide - 1) / wide * wide;
      if (size >= 2 * wide && rounded * 10 <= size * 11) return wide;
    }
    return native;
  }

  Emitter& emitter_;
  const ReductionLoops& reduction_;
  ElementFn element_;
  SmallVector<int64_t> loops_, strides_;
  int64_t width_ = 0;
  const Symbol* flat_ = nullptr;
};

}  // namespace

FailureOr<Lanes> emitReduction(Emitter& emitter,
                               const ReductionLoops& reduction,
                               ElementFn element) {
  return ReductionEmitter(emitter, reduction, element).emit();
}

Value neutralElement(Emitter& emitter, nn::ReduceKind kind, Type type) {
  ImplicitLocOpBuilder& builder = emitter.builder();
  if (kind == nn::ReduceKind::sum) return emitter.constant(type, 0);
  if (kind == nn::ReduceKind::prod) return emitter.constant(type, 1);
  bool negative = kind == nn::ReduceKind::max;
  if (auto real = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(
        builder,
        builder.getFloatAttr(
            type, APFloat::getInf(real.getFloatSemantics(), negative)));
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value(width, kind == nn::ReduceKind::max ? 0 : 1);  // of i1
  if (width > 1)
    value = negative ? APInt::getSignedMinValue(width)
                     : APInt::getSignedMaxValue(width);
  return arith::ConstantOp::create(builder,
                                   builder.getIntegerAttr(type, value));
}

Value combine(Emitter& emitter, nn::ReduceKind kind, Value a, Value b) {
  ImplicitLocOpBuilder& builder = emitter.builder();
  Type type = getElementTypeOrSelf(a.getType());
  bool real = isa<FloatType>(type), truth = type.isInteger(1);
  auto fast = arith::FastMathFlags::nsz;  // either zero will do
  switch (kind) {
    case nn::ReduceKind::sum:
      return real ? Value(arith::AddFOp::create(builder, a, b))
                  : Value(arith::AddIOp::create(builder, a, b));
    case nn::ReduceKind::prod:
      return real ? Value(arith::MulFOp::create(builder, a, b))
                  : Value(arith::MulIOp::create(builder, a, b));
    case nn::ReduceKind::max:
      if (real) return arith::MaximumFOp::create(builder, a, b, fast);
      return truth ? Value(arith::OrIOp::create(builder, a, b))
                   : Value(arith::MaxSIOp::create(builder, a, b));
    case nn::ReduceKind::min:
      if (real) return arith::MinimumFOp::create(builder, a, b, fast);
      return truth ? Value(arith::AndIOp::create(builder, a, b))
                   : Value(arith::MinSIOp::create(builder, a, b));
  }
  llvm_unreachable("unknown kind of reduction");
}

Value combineLanes(Emitter& emitter, nn::ReduceKind kind, Value vector) {
  ImplicitLocOpBuilder& builder = emitter.builder();
  auto type = cast<VectorType>(vector.getType());
  // First combines halves in registers, then the lanes of one register.
  int64_t lanes = type.getNumElements();
  while (lanes > emitter.nativeLanes()) {
    lanes /= 2;
    auto half = [&](int64_t first) -> Value {
      SmallVector<int64_t> picked;
      for (int64_t i = 0; i < lanes; ++i) picked.push_back(first + i);
      return vector::ShuffleOp::create(builder, vector, vector, picked);
    };
    Value low = half(0), high = half(lanes);
    vector = combine(emitter, kind, low, high);
  }
  Type element = type.getElementType();
  bool real = isa<FloatType>(element), truth = element.isInteger(1);
  vector::CombiningKind combining = vector::CombiningKind::ADD;
  switch (kind) {
    case nn::ReduceKind::sum:
      break;
    case nn::ReduceKind::prod:
      combining = vector::CombiningKind::MUL;
      break;
    case nn::ReduceKind::max:
      combining = real    ? vector::CombiningKind::MAXIMUMF
                  : truth ? vector::CombiningKind::OR
                          : vector::CombiningKind::MAXSI;
      break;
    case nn::ReduceKind::min:
      combining = real    ? vector::CombiningKind::MINIMUMF
                  : truth ? vector::CombiningKind::AND
                          : vector::CombiningKind::MINSI;
      break;
  }
  arith::FastMathFlags fast =
      arith::FastMathFlags::reassoc | arith::FastMathFlags::nsz;
  return vector::ReductionOp::create(builder, combining, vector,
                                     real ? fast : arith::FastMathFlags::none);
}

SmallVector<int64_t> chainOfSizes(ArrayRef<int64_t> boundaries, int64_t size) {
  SmallVector<int64_t> result;
  int64_t last = 1;
  for (int64_t boundary : boundaries) {
    if (boundary <= last || boundary >= size || boundary % last != 0 ||
        size % boundary != 0)
      continue;
    result.push_back(boundary);
    last = boundary;
  }
  result.push_back(size);
  return result;
}

}  // namespace partita::kernels
