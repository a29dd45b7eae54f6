// Reductions over dimensions.
#include <optional>

#include "frontends/stablehlo/ops/ops.h"
#include "frontends/stablehlo/ops/scalar_function.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::stablehlo {

using nn::ReduceKind;

std::optional<ReduceKind> reduceKindOf(llvm::StringRef operation, Val x) {
  auto kind = llvm::StringSwitch<std::optional<ReduceKind>>(operation)
                  .Case("add", ReduceKind::sum)
                  .Case("multiply", ReduceKind::prod)
                  .Case("maximum", ReduceKind::max)
                  .Case("minimum", ReduceKind::min)
                  .Default(std::nullopt);
  if (!x.isBool()) return kind;
  if (operation == "or" || operation == "add") return ReduceKind::max;
  if (operation == "and" || operation == "multiply") return ReduceKind::min;
  return kind;
}

bool isNeutral(Emitter& e, ReduceKind kind, Val init) {
  const auto found = init.constant();
  const auto expected = e.neutral(kind, init.elementType()).constant();
  if (!found || !found.isSplat()) return false;
  if (found.getSplatValue<mlir::Attribute>() ==
      expected.getSplatValue<mlir::Attribute>())
    return true;
  // -0 is neutral for sums, too.
  return init.isFloat() && kind == ReduceKind::sum &&
         found.getSplatValue<llvm::APFloat>().isZero();
}

Val combine(Emitter& e, ReduceKind kind, Val a, Val b) {
  switch (kind) {
    case ReduceKind::sum:
      return a.isBool() ? e.bitOr(a, b) : e.add(a, b);
    case ReduceKind::prod:
      return a.isBool() ? e.bitAnd(a, b) : e.mul(a, b);
    case ReduceKind::max:
      return e.maximum(a, b);
    case ReduceKind::min:
      return e.minimum(a, b);
  }
  return {};
}

bool takeReduced(OpContext& n, Values& inputs, Values& inits) {
  const Values all = n.all();
  if (n.failed()) return false;
  const size_t half = all.size() / 2;
  inputs.assign(all.begin(), all.begin() + half);
  inits.assign(all.begin() + half, all.end());
  bool fits = half > 0 && all.size() % 2 == 0;
  for (size_t i = 0; fits && i < half; ++i)
    fits = inits[i].rank() == 0 && inputs[i].shape() == inputs[0].shape() &&
           inits[i].elementType() == inputs[i].elementType();
  if (!fits) n.error("expected operands of one shape, and a scalar for each");
  return fits;
}

ScalarFunction reducerOf(OpContext& n, const Values& inputs) {
  llvm::SmallVector<ElementType> types;
  for (int side = 0; side < 2; ++side)
    for (Val input : inputs) types.push_back(input.elementType());
  return ScalarFunction(n, 0, types);
}

Values reduceTwo(const ScalarFunction& reducer, const Values& a,
                 const Values& b) {
  Values both = a;
  both.append(b.begin(), b.end());
  return reducer.apply(both);
}

namespace {

Val reduceOne(OpContext& n, ReduceKind kind, Val x, Val init, Dims dims) {
  const bool is_bool = x.isBool();
  const bool is_neutral = isNeutral(n.e, kind, init);
  const mlir::Type i32 = n.e.builder().getI32Type();
  Val y = n.e.reduce(kind, is_bool ? n.e.cast(x, i32) : x, dims,
                     /*keep_dims=*/false);
  if (is_bool) y = n.e.cast(y, x.elementType());
  return is_neutral ? y : combine(n.e, kind, y, init);
}

// Any reducer: neighbours are combined until one is left. StableHLO leaves the
// order to the implementation, but not that of the two operands.
void reduceByFunction(OpContext& n, Values values, const Values& inits,
                      Dims dims) {
  Emitter& e = n.e;
  Shape perm(dims), kept;
  int64_t size = 1;
  for (int64_t dim : dims) size *= values[0].dim(dim);
  for (int64_t i = 0; i < values[0].rank(); ++i)
    if (!llvm::is_contained(dims, i)) {
      perm.push_back(i);
      kept.push_back(values[0].dim(i));
    }
  Shape rows = {size};
  rows.append(kept);
  const ScalarFunction reducer = reducerOf(n, values);
  if (n.failed()) return;
  for (Val& value : values) value = e.reshape(e.transpose(value, perm), rows);
  while (size > 1) {
    const int64_t half = size / 2;
    Values even, odd;
    for (Val value : values) {
      even.push_back(e.sliceDim(value, 0, 0, half, 2));
      odd.push_back(e.sliceDim(value, 0, 1, half, 2));
    }
    Values joined = reduceTwo(reducer, even, odd);
    if (n.failed()) return;
    if (joined.size() != values.size()) {
      n.error("expected " + llvm::Twine(values.size()) +
              " results of the reducer, one per operand, found " +
              llvm::Twine(joined.size()));
      return;
    }
    if (size % 2 != 0)
      for (auto [value, whole] : llvm::zip(joined, values))
        value = e.concat({value, e.sliceDim(whole, 0, size - 1, 1)}, 0);
    values = std::move(joined);
    size -= half;
  }
  Values starts;
  for (Val init : inits) starts.push_back(e.broadcast(init, kept));
  if (size == 0) {
    n.outAll(starts);
    return;
  }
  for (Val& value : values) value = e.reshape(value, kept);
  n.outAll(reduceTwo(reducer, starts, values));
}

}  // namespace

Val importReduce(OpContext& n) {
  Values inputs, inits;
  if (!takeReduced(n, inputs, inits)) return {};
  const Shape dims = n.dimensions("dimensions", inputs[0].rank());
  if (n.failed()) return {};
  if (inputs.size() == 1)
    if (const auto kind = reduceKindOf(n.onlyOperation(0), inputs[0]))
      return reduceOne(n, *kind, inputs[0], inits[0], dims);
  if (inputs.size() == 2 && dims.size() == 1 && importArgReduction(n, dims[0]))
    return {};
  if (!n.failed()) reduceByFunction(n, inputs, inits, dims);
  return {};
}

Val importMap(OpContext& n) {
  const Values inputs = n.all();
  if (n.failed()) return {};
  llvm::SmallVector<ElementType> types;
  if (inputs.empty()) return n.error("expected operands, found none");
  for (Val input : inputs) {
    types.push_back(input.elementType());
    if (input.shape() != inputs[0].shape())
      return n.error("expected operands of one shape, found " +
                     toString(inputs[0].shape()) + " and " +
                     toString(input.shape()));
  }
  n.outAll(ScalarFunction(n, 0, types).apply(inputs));
  return {};
}

}  // namespace partita::stablehlo
