// Floats of 8 bits in generated code: bytes in memory, f32 in registers. No
// processor that Partita compiles for converts them, so integer operations do.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_FLOAT8_H_
#define PARTITA_COMPILER_KERNELS_EMIT_FLOAT8_H_

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace partita::kernels {

// True for f8E4M3FN and f8E5M2.
bool isFloat8(mlir::Type element);

// The type of elements in memory: i8 for i1 and floats of 8 bits, else the type
// itself.
mlir::Type storedType(mlir::Type element);

// Converts between f32 and the bytes of `element`, a float of 8 bits; scalars
// or vectors. Encoding rounds to nearest even. Numbers beyond the largest
// become NaN in e4m3 and infinite in e5m2.
mlir::Value encodeFloat8(mlir::ImplicitLocOpBuilder& builder, mlir::Value value,
                         mlir::Type element);
mlir::Value decodeFloat8(mlir::ImplicitLocOpBuilder& builder, mlir::Value bytes,
                         mlir::Type element);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_FLOAT8_H_
