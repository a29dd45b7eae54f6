// Finds classes and their names, and writes the attribute; see passes.td.
#include "compiler/sharding/name_dimensions.h"

#include "compiler/sharding/dim_classes.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/find_names.h"
#include "compiler/sharding/given_names.h"
#include "compiler/sharding/labels.h"
#include "compiler/sharding/name_corrections.h"
#include "compiler/sharding/naming_report.h"
#include "compiler/sharding/passes.h"
#include "dialects/nn/signature.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::sharding {

#define GEN_PASS_DEF_NAMEDIMENSIONSPASS
#include "compiler/sharding/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

mlir::ArrayAttr attributeOf(mlir::MLIRContext* context,
                            llvm::ArrayRef<Dim> dims) {
  mlir::Builder builder(context);
  SmallVector<mlir::Attribute> texts;
  for (const Dim& dim : dims)
    texts.push_back(builder.getStringAttr(print(dim)));
  return builder.getArrayAttr(texts);
}

void setAttributes(mlir::ModuleOp module, const Labels& labels) {
  mlir::MLIRContext* context = module.getContext();
  for (FuncOp function : module.getOps<FuncOp>()) {
    if (function.isExternal()) continue;
    nn::Signature signature(function);
    for (mlir::BlockArgument argument : function.getArguments())
      signature.setArgument(argument.getArgNumber(), kDimsAttr,
                            attributeOf(context, labels.of(argument)));
    for (Operation& op : function.front()) {
      if (op.getNumResults() == 0) continue;
      SmallVector<mlir::Attribute> results;
      for (Value result : op.getResults())
        results.push_back(attributeOf(context, labels.of(result)));
      op.setAttr(kDimsAttr, mlir::ArrayAttr::get(context, results));
    }
  }
}

// Gives each use of a splat constant its own copy, so that a shared constant
// such as 1.0 does not tie unrelated dimensions.
void separateConstants(mlir::ModuleOp module) {
  SmallVector<mlir::arith::ConstantOp> constants;
  module.walk([&](mlir::arith::ConstantOp op) {
    if (mlir::isa<mlir::SplatElementsAttr>(op.getValue()))
      constants.push_back(op);
  });
  for (mlir::arith::ConstantOp op : constants) {
    SmallVector<mlir::OpOperand*> uses;
    for (mlir::OpOperand& use : op->getUses()) uses.push_back(&use);
    for (mlir::OpOperand* use : llvm::drop_begin(uses))
      use->set(mlir::OpBuilder(op).clone(*op)->getResult(0));
  }
}

struct NameDimensionsPass
    : public impl::NameDimensionsPassBase<NameDimensionsPass> {
  using NameDimensionsPassBase::NameDimensionsPassBase;

  void runOnOperation() override {
    if (failed(nameDimensions(getOperation(), names))) signalPassFailure();
  }
};

}  // namespace

mlir::LogicalResult nameDimensions(mlir::ModuleOp module,
                                   const std::string& corrections,
                                   NamingReport* report) {
  auto main = module.lookupSymbol<FuncOp>("main");
  if (!main || main.isExternal())
    return module.emitError(
        "expected a function @main with a body, found none");
  separateConstants(module);
  const DimClasses classes(module);
  Names names;
  if (failed(correctNames(module, classes, corrections, names)))
    return mlir::failure();
  if (!readGivenNames(module, classes, names))
    findNames(module, classes, names);
  const Labels labels(classes, names);
  setAttributes(module, labels);
  if (report != nullptr) *report = reportNames(module, classes, names, labels);
  return mlir::success();
}

}  // namespace partita::sharding
