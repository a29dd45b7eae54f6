// Makes a new module for each rank and copies the rank's operations into it, in
// execution order.
#include "compiler/pipeline/cut.h"

#include "compiler/autodiff/call_marks.h"
#include "compiler/pipeline/delayed_step.h"
#include "compiler/pipeline/placement.h"
#include "compiler/sharding/convert.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace partita::pipeline {
namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

class RankProgram {
 public:
  RankProgram(const mlir::SymbolTable& symbols, const Placement& placement,
              const core::Schedule& schedule, dist::AxesAttr axes, int rank)
      : symbols_(symbols),
        placement_(placement),
        schedule_(schedule),
        axes_(axes),
        rank_(rank),
        main_(symbols.lookup<FuncOp>("main")) {}

  FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> build() {
    indexTransfers();
    auto module = llvm::cast<mlir::ModuleOp>(symbols_.getOp());
    mlir::OwningOpRef<mlir::ModuleOp> program(
        llvm::cast<mlir::ModuleOp>(module->cloneWithoutRegions()));
    program->getBodyRegion().emplaceBlock();
    FailureOr<FuncOp> main = buildMain();
    if (mlir::failed(main)) return failure();
    const llvm::DenseSet<Operation*> called = functions();
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(program->getBody());
    for (Operation& op : *module.getBody()) {
      auto function = llvm::dyn_cast<FuncOp>(op);
      if (function == main_)
        builder.insert(*main);
      else if (!function || function.isPublic() || called.contains(function))
        builder.clone(op);
    }
    return program;
  }

 private:
  void indexTransfers() {
    for (const Transfer& transfer : placement_.transfers()) {
      if (transfer.from == rank_) sends_[transfer.after].push_back(transfer);
      if (transfer.to != rank_) continue;
      SmallVector<Value>& sender = received_[transfer.from].values;
      place_[transfer.value] = {transfer.from, sender.size()};
      sender.push_back(transfer.value);
    }
  }

  FailureOr<FuncOp> buildMain() {
    mlir::OwningOpRef<FuncOp> main(
        llvm::cast<FuncOp>(main_->cloneWithoutRegions()));
    mlir::Block& block = main->getBody().emplaceBlock();
    for (mlir::BlockArgument argument : main_.getArguments()) {
      Value own = block.addArgument(argument.getType(), argument.getLoc());
      if (!place_.count(argument)) map_.map(argument, own);
    }
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(&block);
    sendAll(builder, nullptr);
    for (Operation* op : placement_.orderOf(rank_)) {
      const SmallVector<Value> operands(op->getOperands());
      if (mlir::failed(receiveAll(builder, op, operands))) return failure();
      builder.clone(*op, map_);
      sendAll(builder, op);
    }
    if (mlir::failed(returnOwn(builder, *main))) return failure();
    llvm::BitVector unused(main->getNumArguments());
    for (mlir::BlockArgument argument : main->getArguments())
      if (argument.use_empty()) unused.set(argument.getArgNumber());
    if (mlir::failed(main->eraseArguments(unused))) return failure();
    return main.release();
  }

  void sendAll(mlir::OpBuilder& builder, Operation* after) {
    for (const Transfer& transfer : sends_.lookup(after))
      dist::SendOp::create(builder, transfer.value.getLoc(),
                           map_.lookup(transfer.value), axes_, transfer.to,
                           builder.getStringAttr(reasonFor(transfer)));
  }

  // Names the rank and the first cell there that reads the value.
  std::string reasonFor(const Transfer& transfer) {
    const std::string rank = "rank " + std::to_string(transfer.to);
    Operation* first = nullptr;
    for (Operation* user : transfer.value.getUsers()) {
      auto stage = user->getAttrOfType<mlir::IntegerAttr>(autodiff::kStageAttr);
      if (stage && schedule_.rank_of_stage[stage.getInt()] == transfer.to &&
          (!first || user->isBeforeInBlock(first)))
        first = user;
    }
    if (!first) return rank + " of the pipeline computes with it";
    const std::string layer = layerOf(first);
    return (first->hasAttr(autodiff::kBackwardAttr) ? "the gradient of stage "
                                                    : "stage ") +
           std::to_string(
               first->getAttrOfType<mlir::IntegerAttr>(autodiff::kStageAttr)
                   .getInt()) +
           " on " + rank + " computes with it" +
           (layer.empty() ? "" : " ('" + layer + "')");
  }

  // Returns "h.0" for parameters "h.0.up.weight" and "h.0.down.weight".
  std::string layerOf(Operation* op) {
    std::optional<llvm::StringRef> layer;
    for (Value operand : op->getOperands()) {
      auto argument = llvm::dyn_cast<mlir::BlockArgument>(operand);
      if (!argument) continue;
      const unsigned i = argument.getArgNumber();
      auto kind = main_.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
      auto name = main_.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      if (!kind || !name || kind.getValue() != "parameter") continue;
      if (!layer) layer = name.getValue().rsplit('.').first;
      while (!layer->empty() &&
             !name.getValue().starts_with(layer->str() + "."))
        layer = layer->contains('.') ? layer->rsplit('.').first : "";
    }
    return layer.value_or("").str();
  }

  // Receives the values that `op` reads, and values sent before them.
  LogicalResult receiveAll(mlir::OpBuilder& builder, Operation* op,
                           llvm::ArrayRef<Value> operands) {
    for (Value operand : operands) {
      if (map_.contains(operand)) continue;
      auto place = place_.find(operand);
      if (place == place_.end())
        return op->emitOpError("reads on rank ")
               << rank_
               << " a value that is neither computed there before nor sent";
      Sender& sender = received_[place->second.first];
      while (sender.next <= place->second.second)
        receive(builder, sender.values[sender.next++], place->second.first);
    }
    return success();
  }

  void receive(mlir::OpBuilder& builder, Value value, int from) {
    auto received = dist::ReceiveOp::create(
        builder, value.getLoc(), value.getType(), axes_, from,
        builder.getStringAttr(reasonFor({value, from, rank_})));
    if (dist::ShardingAttr sharding = sharding::shardingOf(value))
      sharding::setSharding(received.getResult(), sharding);
    map_.map(value, received.getResult());
  }

  LogicalResult returnOwn(mlir::OpBuilder& builder, FuncOp main) {
    Operation* terminator = main_.front().getTerminator();
    SmallVector<Value> own, returned;
    llvm::BitVector others(main.getNumResults());
    for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
      if (placement_.rankOfResult(i) == rank_)
        own.push_back(value);
      else
        others.set(i);
    }
    if (mlir::failed(receiveAll(builder, terminator, own))) return failure();
    for (Value value : own) returned.push_back(map_.lookup(value));
    mlir::func::ReturnOp::create(builder, terminator->getLoc(), returned);
    return main.eraseResults(others);
  }

  // Returns the functions reachable from the rank's calls.
  llvm::DenseSet<Operation*> functions() const {
    llvm::DenseSet<Operation*> called;
    SmallVector<FuncOp> open;
    const auto note = [&](CallOp call) {
      auto callee = symbols_.lookup<FuncOp>(call.getCallee());
      if (callee && called.insert(callee).second) open.push_back(callee);
    };
    for (Operation* op : placement_.orderOf(rank_))
      if (auto call = llvm::dyn_cast<CallOp>(op)) note(call);
    while (!open.empty()) open.pop_back_val().walk(note);
    return called;
  }

  // The values that another rank sends to this rank, in order.
  struct Sender {
    SmallVector<Value> values;
    size_t next = 0;
  };

  const mlir::SymbolTable& symbols_;
  const Placement& placement_;
  const core::Schedule& schedule_;
  dist::AxesAttr axes_;
  const int rank_;
  FuncOp main_;
  mlir::IRMapping map_;
  llvm::DenseMap<Operation*, SmallVector<Transfer, 1>> sends_;  // by `after`
  std::map<int, Sender> received_;
  llvm::DenseMap<Value, std::pair<int, size_t>> place_;  // in received_
};

}  // namespace

FailureOr<SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>> cutStages(
    mlir::ModuleOp module, dist::AxesAttr axes,
    const core::Schedule& schedule) {
  const mlir::SymbolTable symbols(module);
  auto main = symbols.lookup<FuncOp>("main");
  if (!main)
    return module.emitError("expected a function named 'main', found none");
  if (!schedule.flushes)
    if (auto weights = delayedWeights(schedule); !weights.ok())
      return main.emitError("schedule: ")
                 << std::string(weights.status().message()),
             failure();
  const core::Schedule step =
      schedule.flushes ? schedule : delayedStep(schedule);
  const std::vector<std::vector<core::TimedCell>> clock =
      schedule.flushes ? core::MakeTimetable(schedule).ranks
                       : delayedClock(schedule);
  Placement placement(main, step, clock);
  if (mlir::failed(placement.find())) return failure();
  SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> programs;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    auto program = RankProgram(symbols, placement, step, axes, rank).build();
    if (mlir::failed(program)) return failure();
    programs.push_back(std::move(*program));
  }
  return programs;
}

}  // namespace partita::pipeline
