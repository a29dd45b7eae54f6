// The arith and math operations on one integer of `width` bits (1 to 64).
//
// A Tensor stores integers sign-extended, except i1, which is 0 or 1. These
// functions accept both forms. They return nothing if the result is undefined:
// division by 0, the lowest integer divided by -1, a shift by the width or
// more.
#ifndef PARTITA_DIALECTS_NN_INTEGER_MATH_H_
#define PARTITA_DIALECTS_NN_INTEGER_MATH_H_

#include <cstdint>
#include <optional>

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::nn {

using MaybeInt = std::optional<int64_t>;

int64_t asSigned(int64_t value, unsigned width);
uint64_t asUnsigned(int64_t value, unsigned width);
MaybeInt addInt(uint64_t a, uint64_t b, unsigned);
MaybeInt subtractInt(uint64_t a, uint64_t b, unsigned);
MaybeInt multiplyInt(uint64_t a, uint64_t b, unsigned);
MaybeInt andInt(uint64_t a, uint64_t b, unsigned);
MaybeInt orInt(uint64_t a, uint64_t b, unsigned);
MaybeInt xorInt(uint64_t a, uint64_t b, unsigned);
MaybeInt maxUnsigned(uint64_t a, uint64_t b, unsigned);
MaybeInt minUnsigned(uint64_t a, uint64_t b, unsigned);
MaybeInt maxSigned(int64_t a, int64_t b, unsigned);
MaybeInt minSigned(int64_t a, int64_t b, unsigned);
MaybeInt divideUnsigned(uint64_t a, uint64_t b, unsigned);
MaybeInt remainderUnsigned(uint64_t a, uint64_t b, unsigned);
MaybeInt ceilDivideUnsigned(uint64_t a, uint64_t b, unsigned);
MaybeInt divideSigned(int64_t a, int64_t b, unsigned width);
MaybeInt remainderSigned(int64_t a, int64_t b, unsigned width);
MaybeInt ceilDivideSigned(int64_t a, int64_t b, unsigned width);
MaybeInt floorDivideSigned(int64_t a, int64_t b, unsigned width);
MaybeInt shiftLeft(uint64_t a, uint64_t b, unsigned width);
MaybeInt shiftRightUnsigned(uint64_t a, uint64_t b, unsigned width);
MaybeInt shiftRightSigned(int64_t a, int64_t b, unsigned width);
int64_t absolute(int64_t a, unsigned);
int64_t leadingZeros(int64_t a, unsigned width);
int64_t trailingZeros(int64_t a, unsigned width);
int64_t countOnes(int64_t a, unsigned width);
MaybeInt power(int64_t base, int64_t exponent, unsigned);
bool compareInt(mlir::arith::CmpIPredicate predicate, int64_t a, int64_t b,
                unsigned width);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_INTEGER_MATH_H_
