// Copies results that no operation could write where the caller wants them; see
// passes.td.
#include <optional>
#include <string>
#include <vector>

#include "compiler/memory/passes.h"
#include "compiler/memory/places.h"
#include "dialects/exec/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::memory {

#define GEN_PASS_DEF_COPYRETURNEDPASS
#include "compiler/memory/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::func::FuncOp;

class Copier {
 public:
  explicit Copier(FuncOp function)
      : function_(function),
        terminator_(function.front().getTerminator()),
        updated_(updatedArguments(function)) {}

  // Returns how many results it copied.
  mlir::FailureOr<int64_t> run() {
    if (mlir::failed(findOpen())) return failure();
    const int64_t count = open_.size();
    while (!open_.empty()) {
      auto next = llvm::find_if_not(
          open_, [&](unsigned result) { return isReadLater(result); });
      if (next == open_.end())
        return function_.emitError(
            "expected stored tensors that do not change places, found that "
            "each of several becomes another");
      copy(*next);
      open_.erase(next);
    }
    return count;
  }

 private:
  // Finds results that are not where the caller wants them.
  LogicalResult findOpen() {
    for (auto [index, value] : llvm::enumerate(terminator_->getOperands())) {
      const std::optional<Place> place = placeOf(value, function_);
      if (!place)
        return function_.emitError("expected memory to be planned, found no ")
               << exec::kOffsetsAttr << " for result " << index;
      places_.push_back(*place);
      if (place->space != Place::Space::kArgument ||
          place->value !=
              function_.getNumArguments() + static_cast<int64_t>(index))
        open_.push_back(index);
    }
    return success();
  }

  // True if the copy of `result` overwrites an argument that another result,
  // not copied yet, still reads.
  bool isReadLater(unsigned result) const {
    const std::optional<unsigned> memory = updated_[result];
    return memory && llvm::any_of(open_, [&](unsigned other) {
             return other != result &&
                    places_[other].space == Place::Space::kArgument &&
                    places_[other].value == *memory;
           });
  }

  void copy(unsigned result) {
    mlir::OpBuilder builder(terminator_);
    const mlir::Value value = terminator_->getOperand(result);
    const auto name = mlir::NameLoc::get(
        builder.getStringAttr("copy of result " + std::to_string(result)),
        terminator_->getLoc());
    auto copied = exec::CopyOp::create(builder, name, value.getType(), value);
    copied->setAttr(
        exec::kOffsetsAttr,
        builder.getDenseI64ArrayAttr({-1 - static_cast<int64_t>(result)}));
    terminator_->setOperand(result, copied.getResult());
  }

  FuncOp function_;
  mlir::Operation* const terminator_;
  const std::vector<std::optional<unsigned>> updated_;  // by results
  llvm::SmallVector<Place> places_;                     // of results
  llvm::SmallVector<unsigned> open_;  // results that are still to be copied
};

class CopyReturned : public impl::CopyReturnedPassBase<CopyReturned> {
 public:
  using CopyReturnedPassBase::CopyReturnedPassBase;

  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (function.isExternal() || function->hasAttr(exec::kKernelAttr))
        continue;
      auto copied = Copier(function).run();
      if (mlir::failed(copied)) return signalPassFailure();
      copies += *copied;
    }
  }
};

}  // namespace
}  // namespace partita::memory
