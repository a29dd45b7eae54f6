// Greedy, in order: a launch joins those of its code before it, or begins a new
// group. All groups end where an operation may depend on them; see passes.td.
#include <algorithm>
#include <numeric>
#include <string>

#include "compiler/memory/lifetimes.h"
#include "compiler/memory/passes.h"
#include "compiler/memory/places.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/labels.h"
#include "dialects/exec/piece_table.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::memory {

#define GEN_PASS_DEF_JOINLAUNCHESPASS
#include "compiler/memory/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

// Bounds the list of operands of one launch.
constexpr size_t kMostPieces = 256;

// The launches of one function.
class Joiner {
 public:
  Joiner(FuncOp function, mlir::SymbolTable& symbols)
      : function_(function), symbols_(symbols) {
    const int64_t arguments = function.getNumArguments();
    for (int64_t i = 0; i < arguments; ++i) memory_.push_back(i);
    for (auto [i, updated] : llvm::enumerate(updatedArguments(function)))
      memory_.push_back(updated ? *updated
                                : arguments + static_cast<int64_t>(i));
  }

  // Returns how many launches became part of another.
  mlir::FailureOr<int64_t> run() {
    for (Operation& op :
         llvm::make_early_inc_range(function_.front().without_terminator())) {
      if (llvm::isa<mlir::arith::ConstantOp>(op)) continue;
      if (llvm::isa<exec::ViewOp>(op)) {
        views_.push_back(&op);
        continue;
      }
      auto launch = llvm::dyn_cast<exec::LaunchOp>(op);
      if (!launch || !launch.getInto().empty()) {
        flush();
        continue;
      }
      Places reads, writes;
      if (mlir::failed(find(launch, launch.getOperands_(), reads)) ||
          mlir::failed(find(launch, launch.getResults(), writes)))
        return failure();
      if (touch(writes, reads_) || touch(writes, writes_) ||
          touch(reads, writes_))
        flush();
      groupFor(launch, reads.size() + writes.size()).push_back(launch);
      llvm::append_range(reads_, reads);
      llvm::append_range(writes_, writes);
    }
    flush();
    return joined_;
  }

 private:
  using Places = llvm::SmallVector<Place>;
  using Group = llvm::SmallVector<exec::LaunchOp>;  // with the same code

  LogicalResult find(exec::LaunchOp launch, mlir::ValueRange values,
                     Places& places) {
    for (Value value : values) {
      const std::optional<Place> place = placeOf(value, function_);
      if (!place)
        return launch.emitOpError("expected memory to be planned, found no ")
               << exec::kOffsetsAttr;
      places.push_back(*place);
    }
    return success();
  }

  mlir::StringRef codeOf(exec::LaunchOp launch) const {
    auto kernel = symbols_.lookup<FuncOp>(launch.getKernel());
    auto code = kernel->getAttrOfType<mlir::StringAttr>(exec::kKernelAttr);
    return code ? code.getValue() : kernel.getName();
  }

  // The group that the launch joins, which may be new and then empty. On GPUs,
  // only launches of code that takes pieces have a range.
  Group& groupFor(exec::LaunchOp launch, size_t buffers) {
    const size_t most = launch.getBlocks()
                            ? exec::piecesOfTable(static_cast<int64_t>(buffers))
                            : kMostPieces;
    if (launch.getRange() && buffers <= exec::kMostPieceOperands)
      for (Group& group : groups_) {
        exec::LaunchOp first = group.front();
        if (first.getRange() && group.size() < most &&
            codeOf(launch) == codeOf(first) &&
            launch.getScratch() == first.getScratch())
          return group;
      }
    return groups_.emplace_back();
  }

  bool touch(const Places& some, const Places& others) const {
    return llvm::any_of(some, [&](const Place& a) {
      return llvm::any_of(others,
                          [&](const Place& b) { return overlap(a, b); });
    });
  }

  bool overlap(const Place& a, const Place& b) const {
    if (a.space != b.space) return false;
    if (a.space == Place::Space::kArgument)
      return memory_[a.value] == memory_[b.value];
    return a.value < b.value + b.bytes && b.value < a.value + a.bytes;
  }

  // Replaces the launches of each group since the last flush by one.
  void flush() {
    // On GPUs, a single launch passes its buffers in a table, too.
    for (const Group& group : groups_) {
      exec::LaunchOp first = group.front();
      if (group.size() > 1 || (first.getBlocks() && first.getRange()))
        join(group);
    }
    groups_.clear(), reads_.clear(), writes_.clear(), views_.clear();
  }

  // Creates the joined launch in place of the last piece, where all operands
  // are available.
  void join(const Group& pieces) {
    exec::LaunchOp first = pieces.front(), last = pieces.back();
    mlir::OpBuilder builder(last);
    llvm::SmallVector<mlir::Attribute> kernels;
    llvm::SmallVector<Value> operands, results;
    llvm::SmallVector<int64_t> ranges, offsets;
    int64_t grain = 0, operations = 0, unread = 0, blocks = 0;
    for (exec::LaunchOp piece : pieces) {
      kernels.push_back(piece.getKernelAttr());
      llvm::append_range(operands, piece.getOperands_());
      llvm::append_range(results, piece.getResults());
      ranges.push_back(*piece.getRange());
      llvm::append_range(
          offsets,
          piece->getAttrOfType<mlir::DenseI64ArrayAttr>(exec::kOffsetsAttr)
              .asArrayRef());
      grain = std::max<int64_t>(grain, piece.getGrain().value_or(1));
      blocks += piece.getBlocks().value_or(0);
      operations += piece.getOperations().value_or(0);
      unread += piece.getUnread().value_or(0);
    }
    auto joined = exec::LaunchPiecesOp::create(
        builder, nameOf(pieces), mlir::ValueRange(results).getTypes(),
        builder.getArrayAttr(kernels), operands, ranges, grain,
        *first.getScratch(),
        numberOrNone(builder, std::min(blocks, exec::kMostBlocks)),
        first.getThreadsAttr(), numberOrNone(builder, operations),
        numberOrNone(builder, unread));
    joined->setAttr(exec::kOffsetsAttr, builder.getDenseI64ArrayAttr(offsets));
    for (auto [old, now] : llvm::zip_equal(results, joined.getResults()))
      old.replaceAllUsesWith(now);
    for (exec::LaunchOp piece : pieces) piece.erase();
    moveViews(joined);
    joined_ += pieces.size() - 1;
  }

  static mlir::IntegerAttr numberOrNone(mlir::Builder& builder,
                                        int64_t number) {
    return number == 0 ? nullptr : builder.getI64IntegerAttr(number);
  }

  // "w and 2 more".
  static mlir::Location nameOf(const Group& pieces) {
    exec::LaunchOp first = pieces.front();
    if (pieces.size() == 1) return first.getLoc();
    auto name = first.getLoc()->findInstanceOf<mlir::NameLoc>();
    const std::string text =
        name ? name.getName().str() : first->getName().getStringRef().str();
    llvm::SmallVector<mlir::Location> locations;
    for (exec::LaunchOp piece : pieces) locations.push_back(piece.getLoc());
    mlir::MLIRContext* context = first.getContext();
    return mlir::NameLoc::get(
        mlir::StringAttr::get(
            context,
            text + " and " + std::to_string(pieces.size() - 1) + " more"),
        mlir::FusedLoc::get(
            locations, mlir::StringAttr::get(context, exec::kPieces), context));
  }

  // Moves views of results, which may be between the pieces, behind the launch.
  void moveViews(exec::LaunchPiecesOp joined) {
    Operation* last = joined;
    for (Operation* view : views_) {
      if (rootOf(view->getResult(0)).getDefiningOp() != joined) continue;
      view->moveAfter(last);
      last = view;
    }
  }

  FuncOp function_;
  mlir::SymbolTable& symbols_;
  // The argument that owns the memory, by argument and then by result.
  llvm::SmallVector<int64_t> memory_;
  llvm::SmallVector<Group> groups_;
  Places reads_, writes_;                // of the groups
  llvm::SmallVector<Operation*> views_;  // since the first launch
  int64_t joined_ = 0;
};

class JoinLaunches : public impl::JoinLaunchesPassBase<JoinLaunches> {
 public:
  using JoinLaunchesPassBase::JoinLaunchesPassBase;

  void runOnOperation() override {
    mlir::SymbolTable symbols(getOperation());
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      // A function that updates stored tensors has no callers, so the memory of
      // all its results is known.
      if (function.isExternal() || function->hasAttr(exec::kKernelAttr) ||
          !updatesStored(function))
        continue;
      auto count = Joiner(function, symbols).run();
      if (mlir::failed(count)) return signalPassFailure();
      joined += *count;
    }
  }
};

}  // namespace
}  // namespace partita::memory
