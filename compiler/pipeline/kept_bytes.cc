// Sums local bytes over the arguments of updates and over values that pass from
// forward to backward calls.
#include "compiler/pipeline/kept_bytes.h"

#include "compiler/autodiff/call_marks.h"
#include "compiler/sharding/convert.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pipeline {
namespace {

using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

class Count {
 public:
  Count(FuncOp main, int parts, bool states_on_host)
      : main_(main),
        mesh_(dist::findMesh(main)),
        parts_(parts),
        states_on_host_(states_on_host) {
    kept_.saved.resize(parts);
  }

  KeptBytes run() && {
    for (mlir::BlockArgument argument : main_.getArguments())
      if (text(argument, nn::kKindAttr) == "parameter") {
        const double bytes = bytesOf(argument);
        kept_.parameters[text(argument, nn::kNameAttr)] = {bytes, bytes};
      }
    addUpdates();
    for (Operation& op : main_.front().without_terminator())
      if (!op.hasAttr(autodiff::kBackwardAttr) && isOfFirstMicrobatch(op))
        for (Value result : op.getResults()) addSaved(result);
    return std::move(kept_);
  }

 private:
  // Adds states, and the gradient, which is not an argument.
  void addUpdates() {
    Operation* terminator = main_.front().getTerminator();
    for (unsigned i = 0; i < main_.getNumResults(); ++i) {
      auto name =
          main_.getResultAttrOfType<mlir::StringAttr>(i, nn::kUpdatesAttr);
      Operation* update = terminator->getOperand(i).getDefiningOp();
      // A select may skip the update.
      if (auto choice = llvm::dyn_cast_or_null<mlir::arith::SelectOp>(update))
        update = choice.getTrueValue().getDefiningOp();
      if (!name || !update) continue;
      auto found = kept_.parameters.find(name.getValue());
      if (found == kept_.parameters.end()) continue;
      for (Value operand : update->getOperands()) {
        auto argument = llvm::dyn_cast<mlir::BlockArgument>(operand);
        if (!argument)
          found->second.all += gradients() * bytesOf(operand);
        else if (!states_on_host_ && text(argument, nn::kKindAttr) == "state")
          found->second.all += bytesOf(operand);
      }
    }
  }

  // Returns the number of gradients of a parameter that exist at once.
  int gradients() {
    return llvm::all_of(main_.getBody().front(), isOfFirstMicrobatch) ? 1 : 2;
  }

  void addSaved(Value value) {
    int last = -1;
    for (Operation* user : value.getUsers()) {
      auto part = user->getAttrOfType<mlir::IntegerAttr>(autodiff::kStageAttr);
      if (part && user->hasAttr(autodiff::kBackwardAttr))
        last = std::max(last, static_cast<int>(part.getInt()));
    }
    if (last >= 0 && last < parts_) kept_.saved[last] += bytesOf(value);
  }

  static bool isOfFirstMicrobatch(Operation& op) {
    auto number =
        op.getAttrOfType<mlir::IntegerAttr>(autodiff::kMicrobatchAttr);
    return !number || number.getInt() == 0;
  }

  double bytesOf(Value value) const {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
    if (!type) return 0;
    if (dist::ShardingAttr sharding = sharding::shardingOf(value);
        mesh_ && sharding)
      type = dist::localType(mesh_, sharding, type);
    return static_cast<double>(type.getNumElements()) *
           llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }

  llvm::StringRef text(mlir::BlockArgument argument, const char* name) {
    auto attr =
        main_.getArgAttrOfType<mlir::StringAttr>(argument.getArgNumber(), name);
    return attr ? attr.getValue() : llvm::StringRef();
  }

  FuncOp main_;
  dist::MeshOp mesh_;
  const int parts_;
  const bool states_on_host_;
  KeptBytes kept_;
};

}  // namespace

KeptBytes keptBytes(mlir::ModuleOp module, int parts, bool states_on_host) {
  auto main = module.lookupSymbol<FuncOp>("main");
  return main ? Count(main, parts, states_on_host).run() : KeptBytes();
}

}  // namespace partita::pipeline
