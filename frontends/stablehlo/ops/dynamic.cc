// Operations whose sizes are operands. Results have the static shapes that the
// file declares, and sizes and positions are constants after folding.
#include "frontends/builder/padding.h"
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {
namespace {

// A vector of constants, one per dimension. Reports an error for others.
Shape constantsOf(OpContext& n, unsigned operand, int64_t rank) {
  const Val value = n.in(operand);
  if (n.failed()) return {};
  const auto constant = value.constant();
  if (!constant || value.isFloat() || value.rank() != 1 ||
      value.dim(0) != rank) {
    n.unsupported("an operand " + llvm::Twine(operand) +
                  " other than a constant with a number per dimension");
    return {};
  }
  Shape numbers;
  for (const llvm::APInt& number : constant.getValues<llvm::APInt>()) {
    numbers.push_back(number.getSExtValue());
    if (!isBelow31Bits(numbers.back())) {
      n.error("expected sizes below 2^31, found " +
              llvm::Twine(numbers.back()));
      return {};
    }
  }
  return numbers;
}

}  // namespace

Val importDimensionSize(OpContext& n) {
  const Val x = n.in(0);
  const ValueType type = n.result();
  if (n.failed()) return {};
  const int64_t dim = n.dimension("dimension", x.rank());
  if (n.failed()) return {};
  return n.e.splat(static_cast<double>(x.dim(dim)), type.element);
}

Val importRealDynamicSlice(OpContext& n) {
  const Val x = n.in(0);
  if (n.failed()) return {};
  Shape sizes;
  const Shape starts = constantsOf(n, 1, x.rank()),
              ends = constantsOf(n, 2, x.rank()),
              strides = constantsOf(n, 3, x.rank());
  if (n.failed()) return {};
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (starts[i] < 0 || starts[i] > ends[i] || ends[i] > x.dim(i) ||
        strides[i] <= 0)
      return n.error("expected 0 <= start <= limit <= size and a stride");
    sizes.push_back((ends[i] - starts[i] + strides[i] - 1) / strides[i]);
  }
  return n.e.slice(x, starts, sizes, strides);
}

Val importDynamicPad(OpContext& n) {
  const Val x = n.in(0), value = n.in(1);
  if (n.failed()) return {};
  const Shape low = constantsOf(n, 2, x.rank()),
              high = constantsOf(n, 3, x.rank()),
              interior = constantsOf(n, 4, x.rank());
  if (n.failed()) return {};
  if (value.rank() != 0 ||
      llvm::any_of(interior, [](int64_t size) { return size < 0; }))
    return n.error("expected a scalar, and interior padding of at least 0");
  return n.e.pad(builder::spreadApart(n.e, x, value, interior), value, low,
                 high);
}

}  // namespace partita::stablehlo
