// Weights of 4 bits with a scale per group: their types, and the operations
// that read them.
#ifndef PARTITA_COMPILER_QUANTIZE_USE_GROUPS_H_
#define PARTITA_COMPILER_QUANTIZE_USE_GROUPS_H_

#include "compiler/quantize/find_weights.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::quantize {

// Types of a weight's arguments: [channels..., summed..., groups, group / 2] of
// i8, and [channels..., summed..., groups]. `type` is the weight's own.
mlir::RankedTensorType packedType(const Weight& weight,
                                  mlir::RankedTensorType type);
mlir::RankedTensorType groupsType(const Weight& weight,
                                  mlir::RankedTensorType type,
                                  mlir::Type element);

struct GroupValues {
  mlir::Value packed, scale;
  mlir::Value zero;  // null: none
};

// The weight as floats of `type`, the weight's own.
mlir::Value widenGroups(mlir::OpBuilder& builder, mlir::Location loc,
                        const Weight& weight, const GroupValues& values,
                        mlir::RankedTensorType type);

// Replaces a look-up of rows of the packed table by one of bytes and scales.
void lookUpGroups(nn::GatherOp gather, const GroupValues& values);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_USE_GROUPS_H_
