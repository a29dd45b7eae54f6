// Lowers collectives to numbered axes, and devices' coordinates to arguments;
// see passes.td.
#include <map>
#include <vector>

#include "compiler/kernels/passes.h"
#include "dialects/dist/numbered_axes.h"
#include "dialects/nn/row_share.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_LOWERCOLLECTIVESPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using exec::CollectiveKind;
using llvm::SmallVector;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// Lowers collectives one by one.
class CollectiveLowering {
 public:
  explicit CollectiveLowering(dist::MeshOp mesh) : mesh_(mesh) {}

  // Lowers and erases `op`. Returns false if it is no collective.
  bool lower(mlir::Operation* op) {
    return llvm::TypeSwitch<mlir::Operation*, bool>(op)
        .Case([&](dist::AllReduceOp reduce) {
          auto result = create(reduce, CollectiveKind::kAllReduce);
          result.setReduction(reduce.getReduction());
          return replace(reduce, result);
        })
        .Case([&](dist::AllGatherOp gather) {
          auto result = create(gather, CollectiveKind::kAllGather);
          result.setDim(gather.getDim());
          return replace(gather, result);
        })
        .Case([&](dist::ReduceScatterOp scatter) {
          auto result = create(scatter, CollectiveKind::kReduceScatter);
          result.setDim(scatter.getDim());
          result.setReduction(scatter.getReduction());
          return replace(scatter, result);
        })
        .Case([&](dist::AllSliceOp slice) {
          auto result = create(slice, CollectiveKind::kAllSlice);
          result.setDim(slice.getDim());
          return replace(slice, result);
        })
        .Case([&](dist::AllToAllOp all_to_all) {
          auto result = create(all_to_all, CollectiveKind::kAllToAll);
          result.setDim(all_to_all.getSplitDim());
          result.setOtherDim(all_to_all.getConcatDim());
          return replace(all_to_all, result);
        })
        .Case([&](dist::ExchangeOp exchange) {
          auto result = create(exchange, CollectiveKind::kExchange);
          result.setDim(exchange.getDim());
          result.setSize(exchange.getSize());
          result.setStep(exchange.getStep());
          result.setOffset(exchange.getOffset());
          result.setFillAttr(exchange.getFillAttr());
          return replace(exchange, result);
        })
        .Case([&](dist::PermuteOp permute) {
          // The device that sends has our index along `to`, less the shift, as
          // its index along `axes`.
          auto result = create(permute, CollectiveKind::kPermute);
          result.setAxes(dist::numberedAxes(mesh_, permute.getTo()));
          result.setSourceAxes(dist::numberedAxes(mesh_, permute.getAxes()));
          result.setOffset(permute.getShift());
          return replace(permute, result);
        })
        .Case([&](dist::BroadcastOp broadcast) {
          auto result = create(broadcast, CollectiveKind::kBroadcast);
          result.setRoot(broadcast.getRoot());
          return replace(broadcast, result);
        })
        .Case([&](dist::SendRowsOp send) {
          auto result = create(send, CollectiveKind::kSendRows);
          result.setFillAttr(send.getFillAttr());
          return replaceRows(send, result, send.getTo());
        })
        .Case([&](dist::ReturnRowsOp back) {
          return replaceRows(back, create(back, CollectiveKind::kReturnRows),
                             back.getTo());
        })
        .Case([&](dist::SendOp send) {
          mlir::OpBuilder builder(send);
          exec::SendOp::create(builder, send.getLoc(), send.getInput(),
                               dist::numberedAxes(mesh_, send.getAxes()),
                               send.getTo(), send.getWhyAttr());
          send.erase();
          return true;
        })
        .Case([&](dist::ReceiveOp receive) {
          mlir::OpBuilder builder(receive);
          auto result = exec::ReceiveOp::create(
              builder, receive.getLoc(), receive.getResult().getType(),
              dist::numberedAxes(mesh_, receive.getAxes()), receive.getFrom(),
              receive.getWhyAttr());
          receive.replaceAllUsesWith(result.getResult());
          receive.erase();
          return true;
        })
        .Default(false);
  }

 private:
  template <typename Op>
  exec::CollectiveOp create(Op op, CollectiveKind kind) {
    mlir::OpBuilder builder(op);
    auto result = exec::CollectiveOp::create(
        builder, op.getLoc(), op.getResult().getType(), kind, op.getInput(),
        dist::numberedAxes(mesh_, op.getAxes()));
    if (op.getWhyAttr()) result.setWhyAttr(op.getWhyAttr());
    return result;
  }

  // Also in a group of one device: not every row is sent.
  static bool replaceRows(mlir::Operation* op, exec::CollectiveOp result,
                          mlir::Value to) {
    result.getToMutable().assign(to);
    result.setDim(0);
    result.setSize(
        llvm::cast<mlir::RankedTensorType>(to.getType()).getNumElements());
    op->replaceAllUsesWith(result);
    op->erase();
    return true;
  }

  // A group of one device moves no data.
  static bool replace(mlir::Operation* op, exec::CollectiveOp result) {
    const bool alone = result.getGroupSize() == 1 &&
                       result.getKind() != CollectiveKind::kExchange &&
                       result.getInput().getType() == result.getType();
    op->replaceAllUsesWith(
        mlir::ValueRange(alone ? result.getInput() : result.getResult()));
    op->erase();
    if (alone) result.erase();
    return true;
  }

  dist::MeshOp mesh_;
};

// Gives functions an argument for each coordinate that they or their callees
// need.
class CoordinateThreading {
 public:
  explicit CoordinateThreading(dist::MeshOp mesh) : mesh_(mesh) {}

  void run(FuncOp function) {
    if (function.isExternal() || !visited_.insert(function).second) return;
    function.walk([&](CallOp call) {
      passOn(function, call, call.getCalleeAttr(), call.getOperandsMutable());
    });
    // A loop passes them to every iteration.
    function.walk([&](nn::LoopOp loop) {
      passOn(function, loop, loop.getBodyAttr(), loop.getOperands_Mutable());
    });
    function.walk([&](dist::CoordinateOp coordinate) {
      coordinate.replaceAllUsesWith(
          valueOf(function, coordinate,
                  dist::numberedAxes(mesh_, coordinate.getAxes())));
      coordinate.erase();
    });
  }

 private:
  // Appends the coordinates that the callee needs to the call.
  void passOn(FuncOp function, mlir::Operation* call,
              mlir::FlatSymbolRefAttr name,
              mlir::MutableOperandRange operands) {
    auto callee =
        mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(call, name);
    if (!callee) return;
    run(callee);
    for (auto& [argument, axes] : asked_[callee])
      operands.append(valueOf(function, call, axes));
  }

  mlir::Value valueOf(FuncOp function, mlir::Operation* user,
                      const std::vector<int64_t>& axes) {
    mlir::OpBuilder builder(user);
    auto type = mlir::RankedTensorType::get({}, builder.getI64Type());
    if (axes.empty())
      return mlir::arith::ConstantOp::create(
          builder, user->getLoc(),
          mlir::DenseElementsAttr::get(type, int64_t{0}));
    for (auto& [argument, known] : asked_[function])
      if (known == axes) return function.getArgument(argument);
    const unsigned argument = function.getNumArguments();
    (void)function.insertArgument(
        argument, type,
        function.isPrivate() ? nullptr : attributes(builder, axes),
        user->getLoc());
    asked_[function].push_back({argument, axes});
    return function.getArgument(argument);
  }

  mlir::DictionaryAttr attributes(mlir::Builder& builder,
                                  const std::vector<int64_t>& axes) {
    std::string name = "coordinate(";
    for (size_t i = 0; i < axes.size(); i += 3) {
      dist::MeshAxisAttr axis = mesh_.getAxes().getAxes()[axes[i]];
      const bool whole = axes[i + 2] == axis.getSize();
      dist::AxisAttr part =
          dist::AxisAttr::get(builder.getContext(), axis.getName(), axes[i + 1],
                              whole ? 0 : axes[i + 2]);
      if (i > 0) name += ", ";
      llvm::raw_string_ostream os(name);
      part.printShort(os);
    }
    return builder.getDictionaryAttr(
        {builder.getNamedAttr(nn::kKindAttr,
                              builder.getStringAttr("coordinate")),
         builder.getNamedAttr(nn::kNameAttr, builder.getStringAttr(name + ")")),
         builder.getNamedAttr(nn::kAxesAttr,
                              builder.getDenseI64ArrayAttr(axes))});
  }

  dist::MeshOp mesh_;
  llvm::DenseSet<mlir::Operation*> visited_;
  // By function: number of an argument, and the axes of its coordinate.
  std::map<mlir::Operation*,
           std::vector<std::pair<unsigned, std::vector<int64_t>>>>
      asked_;
};

// Drops attributes that described the division, so that equal kernels look
// equal. Prices still need the share of experts' rows.
void dropNotes(mlir::Operation* op) {
  for (mlir::NamedAttribute attribute :
       llvm::to_vector(op->getDiscardableAttrs())) {
    mlir::Dialect* dialect = attribute.getNameDialect();
    if (llvm::isa_and_nonnull<dist::DistDialect, nn::NNDialect>(dialect) &&
        attribute.getName() != nn::kRowShareAttr)
      op->removeDiscardableAttr(attribute.getName());
  }
}

class LowerCollectives
    : public impl::LowerCollectivesPassBase<LowerCollectives> {
 public:
  void runOnOperation() override {
    dist::MeshOp mesh = dist::findMesh(getOperation());
    if (!mesh) return;
    CollectiveLowering lowering(mesh);
    CoordinateThreading threading(mesh);
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (lowerBody(function, lowering).wasInterrupted())
        return signalPassFailure();
      threading.run(function);
    }
  }

 private:
  mlir::WalkResult lowerBody(FuncOp function, CollectiveLowering& lowering) {
    return function.getBody().walk([&](mlir::Operation* op) {
      if (lowering.lower(op)) {
        ++collectives;
        return mlir::WalkResult::advance();
      }
      if (llvm::isa<dist::ReshardOp>(op)) {
        op->emitOpError("expected a partitioned program, without reshards");
        return mlir::WalkResult::interrupt();
      }
      if (llvm::isa<dist::ConstraintOp, dist::BarrierOp, dist::GroupOp>(op)) {
        op->replaceAllUsesWith(op->getOperands());
        op->erase();
        return mlir::WalkResult::advance();
      }
      dropNotes(op);
      return mlir::WalkResult::advance();
    });
  }
};

}  // namespace
}  // namespace partita::kernels
