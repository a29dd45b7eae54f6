// The exec dialect's classes, generated from dialect.td and ops.td.
#ifndef PARTITA_DIALECTS_EXEC_DIALECT_H_
#define PARTITA_DIALECTS_EXEC_DIALECT_H_

#include "dialects/terms/activation.h"
#include "dialects/terms/collective_kind.h"
#include "dialects/terms/conv_direction.h"
#include "dialects/terms/reduction.h"
#include "dialects/terms/symbols.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace partita::exec {
using terms::Activation;
using terms::CollectiveKind;
using terms::ConvDirection;
using terms::Reduction;
using terms::stringifyCollectiveKind;
}  // namespace partita::exec

// The generated files need the declarations above, in this order.
// clang-format off
#include "dialects/exec/dialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/exec/attrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/exec/ops.h.inc"
// clang-format on

namespace partita::exec {

// Names of the discardable attributes that the dialect defines; see dialect.td.
inline constexpr char kOffsetsAttr[] = "exec.offsets";
inline constexpr char kFrameOffsetAttr[] = "exec.frame_offset";
inline constexpr char kFrameBytesAttr[] = "exec.frame_bytes";
// Marks a private function as the body of a generated kernel.
inline constexpr char kKernelAttr[] = "exec.kernel";

// Marks a call that repeats, as nn.loop does.
inline constexpr char kRepeatsAttr[] = "exec.repeats";

// Maximum number of operands and results of one piece of exec.launch_pieces.
inline constexpr size_t kMostPieceOperands = 64;

// Size in bytes of a dense buffer of this type (i1 takes one byte per element).
int64_t bufferBytes(mlir::RankedTensorType type);

// Bytes of the frame of a call that repeats, for a callee whose own frame has
// `callee_bytes`: the results of an iteration lie behind the callee's frame, in
// order, each at a multiple of 64 bytes.
int64_t repeatedFrameBytes(int64_t callee_bytes, mlir::TypeRange results);

}  // namespace partita::exec

#endif  // PARTITA_DIALECTS_EXEC_DIALECT_H_
