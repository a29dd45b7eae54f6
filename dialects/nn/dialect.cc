// Registration of the nn dialect: its attributes, operations and the
// verification of its argument attributes.
#include "dialects/nn/dialect.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectImplementation.h"

// clang-format off
#include "dialects/nn/dialect.cc.inc"
#include "dialects/nn/enums.cc.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/nn/attrs.cc.inc"
#include "dialects/nn/interfaces.cc.inc"
#define GET_OP_CLASSES
#include "dialects/nn/ops.cc.inc"
// clang-format on

namespace partita::nn {

void NNDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/nn/attrs.cc.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/nn/ops.cc.inc"
      >();
}

mlir::Operation* NNDialect::materializeConstant(mlir::OpBuilder& builder,
                                                mlir::Attribute value,
                                                mlir::Type type,
                                                mlir::Location loc) {
  return mlir::arith::ConstantOp::materialize(builder, value, type, loc);
}

}  // namespace partita::nn
