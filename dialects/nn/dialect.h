// The nn dialect's classes, generated from dialect.td, attrs.td, interfaces.td
// and ops.td.
#ifndef PARTITA_DIALECTS_NN_DIALECT_H_
#define PARTITA_DIALECTS_NN_DIALECT_H_

#include "dialects/nn/sharding_rule.h"
#include "dialects/nn/tensor.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

// The generated code uses the declarations above.
// clang-format off
#include "dialects/nn/dialect.h.inc"
#include "dialects/nn/enums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/nn/attrs.h.inc"
#include "dialects/nn/interfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/nn/ops.h.inc"
// clang-format on

namespace partita::nn {

// Names of the discardable attributes that the dialect defines; see dialect.td.
inline constexpr char kKindAttr[] = "nn.kind";
inline constexpr char kNameAttr[] = "nn.name";
inline constexpr char kSourceAttr[] = "nn.source";
inline constexpr char kPartsAttr[] = "nn.parts";
inline constexpr char kAxesAttr[] = "nn.axes";
inline constexpr char kUpdatesAttr[] = "nn.updates";
inline constexpr char kRoleAttr[] = "nn.role";
inline constexpr char kUnsignedAttr[] = "nn.unsigned";
inline constexpr char kRuleAttr[] = "nn.rule";
inline constexpr char kViewOfAttr[] = "nn.view_of";

// Attaches the ReferenceOpInterface to arith and math operations.
void registerReferenceModels(mlir::DialectRegistry& registry);
// Attaches the ShardingRuleOpInterface to arith and math operations.
void registerShardingRuleModels(mlir::DialectRegistry& registry);
// Calls both. Required on every registry that holds nn.
inline void registerExternalModels(mlir::DialectRegistry& registry) {
  registerReferenceModels(registry);
  registerShardingRuleModels(registry);
}

// The result type that follows from the operands and attributes. Null if the
// attributes do not fit the operands' ranks (for a gather, sizes).
mlir::RankedTensorType inferTransposeType(mlir::RankedTensorType input,
                                          llvm::ArrayRef<int64_t> perm);
mlir::RankedTensorType inferReduceType(mlir::RankedTensorType input,
                                       llvm::ArrayRef<int64_t> dims);
mlir::RankedTensorType inferDotGeneralType(
    mlir::RankedTensorType lhs, mlir::RankedTensorType rhs,
    llvm::ArrayRef<int64_t> lhs_batch, llvm::ArrayRef<int64_t> rhs_batch,
    llvm::ArrayRef<int64_t> lhs_contract, llvm::ArrayRef<int64_t> rhs_contract);
mlir::RankedTensorType inferGatherType(mlir::RankedTensorType input,
                                       mlir::RankedTensorType indices,
                                       llvm::ArrayRef<int64_t> axes,
                                       int64_t batch_dims);
// floor((low + size + high - dilation * (window - 1) - 1) / stride) + 1, or 0
// if the window does not fit.
int64_t windowedSize(int64_t size, int64_t window, int64_t stride,
                     int64_t dilation, int64_t low, int64_t high);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_DIALECT_H_
