// Arithmetic on one integer.
#include "dialects/nn/integer_math.h"

#include <algorithm>

#include "llvm/ADT/APInt.h"
#include "llvm/Support/MathExtras.h"

namespace partita::nn {

namespace arith = mlir::arith;

namespace {

bool canDivide(int64_t a, int64_t b, unsigned width) {
  return b != 0 && !(b == -1 && a == llvm::minIntN(width));
}

}  // namespace

int64_t asSigned(int64_t value, unsigned width) {
  return width == 1 ? -value : value;
}
uint64_t asUnsigned(int64_t value, unsigned width) {
  return width >= 64
             ? value
             : static_cast<uint64_t>(value) & ((uint64_t{1} << width) - 1);
}

// Sums, differences and products wrap around, signed and unsigned alike.
MaybeInt addInt(uint64_t a, uint64_t b, unsigned) { return a + b; }
MaybeInt subtractInt(uint64_t a, uint64_t b, unsigned) { return a - b; }
MaybeInt multiplyInt(uint64_t a, uint64_t b, unsigned) { return a * b; }
MaybeInt andInt(uint64_t a, uint64_t b, unsigned) { return a & b; }
MaybeInt orInt(uint64_t a, uint64_t b, unsigned) { return a | b; }
MaybeInt xorInt(uint64_t a, uint64_t b, unsigned) { return a ^ b; }
MaybeInt maxUnsigned(uint64_t a, uint64_t b, unsigned) {
  return std::max(a, b);
}
MaybeInt minUnsigned(uint64_t a, uint64_t b, unsigned) {
  return std::min(a, b);
}
MaybeInt maxSigned(int64_t a, int64_t b, unsigned) { return std::max(a, b); }
MaybeInt minSigned(int64_t a, int64_t b, unsigned) { return std::min(a, b); }

MaybeInt divideUnsigned(uint64_t a, uint64_t b, unsigned) {
  return b == 0 ? MaybeInt() : a / b;
}
MaybeInt remainderUnsigned(uint64_t a, uint64_t b, unsigned) {
  return b == 0 ? MaybeInt() : a % b;
}
MaybeInt ceilDivideUnsigned(uint64_t a, uint64_t b, unsigned) {
  return b == 0 ? MaybeInt() : a / b + (a % b != 0);
}
MaybeInt divideSigned(int64_t a, int64_t b, unsigned width) {
  return canDivide(a, b, width) ? a / b : MaybeInt();
}
MaybeInt remainderSigned(int64_t a, int64_t b, unsigned width) {
  return canDivide(a, b, width) ? a % b : MaybeInt();
}
MaybeInt ceilDivideSigned(int64_t a, int64_t b, unsigned width) {
  if (!canDivide(a, b, width)) return {};
  return a / b + (a % b != 0 && (a < 0) == (b < 0));
}
MaybeInt floorDivideSigned(int64_t a, int64_t b, unsigned width) {
  if (!canDivide(a, b, width)) return {};
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// A shift by the width or more is undefined.
MaybeInt shiftLeft(uint64_t a, uint64_t b, unsigned width) {
  return b >= width ? MaybeInt() : a << b;
}
MaybeInt shiftRightUnsigned(uint64_t a, uint64_t b, unsigned width) {
  return b >= width ? MaybeInt() : a >> b;
}
MaybeInt shiftRightSigned(int64_t a, int64_t b, unsigned width) {
  return asUnsigned(b, width) >= width ? MaybeInt() : a >> b;
}

int64_t absolute(int64_t a, unsigned) {
  return a < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a;
}
int64_t leadingZeros(int64_t a, unsigned width) {
  return llvm::APInt(width, asUnsigned(a, width)).countl_zero();
}
int64_t trailingZeros(int64_t a, unsigned width) {
  return llvm::APInt(width, asUnsigned(a, width)).countr_zero();
}
int64_t countOnes(int64_t a, unsigned width) {
  return llvm::popcount(asUnsigned(a, width));
}

// Integer powers. A negative exponent n gives 1 / a^|n|, truncated.
MaybeInt power(int64_t base, int64_t exponent, unsigned) {
  if (exponent < 0) {
    if (base == 0) return {};
    if (base == 1) return 1;
    return base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  }
  uint64_t result = 1;
  for (uint64_t factor = base; exponent > 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return result;
}

bool compareInt(arith::CmpIPredicate predicate, int64_t a, int64_t b,
                unsigned width) {
  using P = arith::CmpIPredicate;
  const int64_t sa = asSigned(a, width), sb = asSigned(b, width);
  const uint64_t ua = asUnsigned(a, width), ub = asUnsigned(b, width);
  switch (predicate) {
    case P::eq:
      return ua == ub;
    case P::ne:
      return ua != ub;
    case P::slt:
      return sa < sb;
    case P::sle:
      return sa <= sb;
    case P::sgt:
      return sa > sb;
    case P::sge:
      return sa >= sb;
    case P::ult:
      return ua < ub;
    case P::ule:
      return ua <= ub;
    case P::ugt:
      return ua > ub;
    case P::uge:
      return ua >= ub;
  }
  llvm_unreachable("all predicates are above");
}

}  // namespace partita::nn
