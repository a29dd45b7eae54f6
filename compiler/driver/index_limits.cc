// Follows indices from each table and loss back to an input, through operations
// that only move elements.
#include "compiler/driver/index_limits.h"

#include <algorithm>

#include "compiler/emit/emit.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {
namespace {

using llvm::SmallVector;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

class Limits {
 public:
  explicit Limits(mlir::ModuleOp module)
      : module_(module), main_(module.lookupSymbol<FuncOp>("main")) {
    module.walk([&](CallOp call) { calls_[call.getCallee()].push_back(call); });
  }

  void run() {
    if (!main_) return;
    module_.walk([&](mlir::Operation* op) {
      llvm::TypeSwitch<mlir::Operation*>(op)
          .Case([&](nn::GatherOp gather) {
            if (gather.getAxes().size() == 1)
              follow(gather.getIndices(),
                     typeOf(gather.getInput())
                         .getDimSize(gather.getAxes().front()));
          })
          .Case([&](nn::CrossEntropyOp loss) {
            const int64_t classes = typeOf(loss.getLogits()).getShape().back();
            // An ignore index of at least `classes` is a legal target above the
            // limit.
            if (static_cast<int64_t>(loss.getIgnoreIndex()) < classes)
              follow(loss.getTargets(), classes);
          });
    });
  }

 private:
  static mlir::RankedTensorType typeOf(Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }

  void follow(Value value, int64_t limit) {
    SmallVector<Value> left = {value};
    llvm::DenseSet<Value> seen;
    while (!left.empty()) {
      const Value next = left.pop_back_val();
      if (!seen.insert(next).second) continue;
      if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(next))
        enter(argument, limit, left);
      else
        addSources(next.getDefiningOp(), left);
    }
  }

  void enter(mlir::BlockArgument argument, int64_t limit,
             SmallVector<Value>& left) {
    auto function = llvm::dyn_cast<FuncOp>(argument.getOwner()->getParentOp());
    if (!function) return;
    const unsigned index = argument.getArgNumber();
    if (function == main_) return mark(index, limit);
    for (CallOp call : calls_[function.getName()])
      left.push_back(call.getOperand(index));
  }

  void mark(unsigned index, int64_t limit) {
    auto kind = main_.getArgAttrOfType<mlir::StringAttr>(index, nn::kKindAttr);
    if (kind && kind.getValue() != "input") return;
    if (auto known =
            main_.getArgAttrOfType<mlir::IntegerAttr>(index, emit::kLimitAttr))
      limit = std::min(limit, known.getInt());
    main_.setArgAttr(
        index, emit::kLimitAttr,
        mlir::Builder(module_.getContext()).getI64IntegerAttr(limit));
  }

  // Adds the operands whose elements are exactly the elements of the result.
  static void addSources(mlir::Operation* op, SmallVector<Value>& left) {
    llvm::TypeSwitch<mlir::Operation*>(op)
        .Case<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp,
              mlir::arith::ExtSIOp, mlir::arith::ExtUIOp>(
            [&](auto same) { left.push_back(same->getOperand(0)); })
        .Case([&](mlir::arith::SelectOp choice) {
          // ONNX counts negative indices from the end.
          auto compare =
              choice.getCondition().getDefiningOp<mlir::arith::CmpIOp>();
          if (compare &&
              compare.getPredicate() == mlir::arith::CmpIPredicate::slt &&
              compare.getLhs() == choice.getFalseValue())
            left.push_back(choice.getFalseValue());
        });
  }

  mlir::ModuleOp module_;
  FuncOp main_;
  llvm::StringMap<SmallVector<CallOp>> calls_;
};

}  // namespace

void markIndexLimits(mlir::ModuleOp module) { Limits(module).run(); }

}  // namespace partita::driver
