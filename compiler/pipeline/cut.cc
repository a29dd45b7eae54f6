// First where and when each operation of @main is computed, on the module as it
// is; then, for each rank, a copy of the module with what is not its own left
// out.
#include "compiler/pipeline/cut.h"

#include <map>
#include <set>

#include "compiler/autodiff/call_marks.h"
#include "compiler/sharding/convert.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringSet.h"
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

constexpr int kEverywhere = -1;

// A value on its way from one rank to another.
struct Transfer {
  Value value;
  int from = 0, to = 0;
};

class Cutter {
 public:
  Cutter(mlir::ModuleOp module, dist::AxesAttr axes,
         const core::Schedule& schedule)
      : module_(module), axes_(axes), schedule_(schedule) {}

  LogicalResult place() {
    main_ = module_.lookupSymbol<FuncOp>("main");
    if (!main_)
      return module_.emitError("expected a function named 'main', found none");
    int index = 0;
    for (Operation& op : main_.front().without_terminator()) {
      body_.push_back(&op);
      number_[&op] = index++;
    }
    if (mlir::failed(placeCalls())) return failure();
    placeArguments();
    for (Operation* op : body_)
      if (!slot_.count(op)) placeOther(op);
    placeResults();
    for (Operation* op : llvm::reverse(body_))
      if (home_.lookup(op) == kEverywhere) placeCopies(op);
    findTransfers();
    return success();
  }

  mlir::OwningOpRef<mlir::ModuleOp> programOf(int rank) {
    mlir::IRMapping map;
    mlir::OwningOpRef<mlir::ModuleOp> program(
        llvm::cast<mlir::ModuleOp>(module_->clone(map)));
    auto main = program->lookupSymbol<FuncOp>("main");
    Operation* terminator = main.front().getTerminator();
    mlir::OpBuilder builder(terminator);
    // Receives come before what first reads them, and in the order of sends.
    std::map<int, SmallVector<size_t>> receives = receivesOf(rank);
    sendAll(rank, builder, map, nullptr);
    for (Operation* op : orderOf(rank)) {
      receiveFor(rank, op, builder, map, receives);
      Operation* own = map.lookup(op);
      own->moveBefore(terminator);
      sendAll(rank, builder, map, op);
    }
    receiveFor(rank, main_.front().getTerminator(), builder, map, receives);
    finish(rank, main, map);
    return program;
  }

 private:
  // A pipeline's cells are calls with marks.
  LogicalResult placeCalls() {
    std::map<std::tuple<int, int, int>, std::pair<int, int>> cells;
    for (int rank = 0; rank < schedule_.ranks(); ++rank)
      for (auto [slot, cell] : llvm::enumerate(schedule_.cells[rank]))
        cells[{static_cast<int>(cell.work), cell.stage, cell.microbatch}] = {
            rank, static_cast<int>(slot)};
    for (Operation* op : body_) {
      auto stage = op->getAttrOfType<mlir::IntegerAttr>(autodiff::kStageAttr);
      if (!llvm::isa<CallOp>(op) || !stage) continue;
      auto microbatch =
          op->getAttrOfType<mlir::IntegerAttr>(autodiff::kMicrobatchAttr);
      const core::Work work = op->hasAttr(autodiff::kBackwardAttr)
                                  ? core::Work::kBackward
                                  : core::Work::kForward;
      core::Cell cell;
      cell.work = work;
      cell.stage = static_cast<int>(stage.getInt());
      cell.microbatch = microbatch ? static_cast<int>(microbatch.getInt()) : 0;
      auto found =
          cells.find({static_cast<int>(work), cell.stage, cell.microbatch});
      if (found == cells.end())
        return op->emitOpError("expected a cell of the schedule, found ")
               << core::ToString(cell);
      home_[op] = found->second.first;
      slot_[op] = found->second.second;
    }
    return success();
  }

  // The rank of the first marked call that what `value` becomes leads to.
  int firstUse(Value value) {
    Operation* first = nullptr;
    SmallVector<Value> open = {value};
    llvm::DenseSet<Operation*> seen;
    while (!open.empty())
      for (Operation* user : open.pop_back_val().getUsers()) {
        if (!number_.count(user) || !seen.insert(user).second) continue;
        if (!slot_.count(user))
          llvm::append_range(open, user->getResults());
        else if (!first || number_[user] < number_[first])
          first = user;
      }
    return first ? home_[first] : 0;
  }

  // What changes is in one place, all else everywhere.
  void placeArguments() {
    llvm::StringSet<> changing;
    for (unsigned i = 0; i < main_.getNumResults(); ++i)
      changing.insert(updated(i));
    for (mlir::BlockArgument argument : main_.getArguments()) {
      const llvm::StringRef name = text(argument, nn::kNameAttr);
      if (text(argument, nn::kKindAttr) == "state" || !changing.contains(name))
        continue;
      owner_[argument] = by_name_[name] = firstUse(argument);
    }
    // What is updated together is kept together: states with parameters.
    Operation* terminator = main_.front().getTerminator();
    for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
      const llvm::StringRef name = updated(i);
      Operation* update = value.getDefiningOp();
      if (!update || !by_name_.count(name) || slot_.count(update)) continue;
      updates_[update] = by_name_[name];
      for (Value operand : update->getOperands())
        if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(operand);
            argument && text(argument, nn::kKindAttr) == "state") {
          owner_[argument] = by_name_[name];
          by_name_[text(argument, nn::kNameAttr)] = by_name_[name];
        }
    }
    for (mlir::BlockArgument argument : main_.getArguments())
      if (text(argument, nn::kKindAttr) == "state" && !owner_.count(argument))
        owner_[argument] = 0;  // of the step as a whole, as the loss scale
  }

  int homeOf(Value value) const {
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
      auto found = owner_.find(argument);
      return found == owner_.end() ? kEverywhere : found->second;
    }
    return home_.lookup(value.getDefiningOp());
  }

  int slotOf(Value value) const {
    Operation* producer = value.getDefiningOp();
    return producer ? slot_.lookup(producer) : -1;
  }

  // Where the last operand is that is not everywhere; as early as can be.
  void placeOther(Operation* op) {
    int home = kEverywhere;
    for (Value operand : op->getOperands())
      if (int other = homeOf(operand); other != kEverywhere) home = other;
    if (auto update = updates_.find(op); update != updates_.end())
      home = update->second;
    home_[op] = home;
    int slot = -1;
    bool is_local = false;
    for (Value operand : op->getOperands()) {
      if (homeOf(operand) != home || home == kEverywhere) continue;
      is_local = true;
      slot = std::max(slot, slotOf(operand));
    }
    const bool after_all = home != kEverywhere && !is_local;
    slot_[op] = after_all ? end(home) : slot;
  }

  int end(int rank) const {
    return static_cast<int>(schedule_.cells[rank].size());
  }

  void placeResults() {
    Operation* terminator = main_.front().getTerminator();
    for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
      auto found = by_name_.find(updated(i));
      const int home = homeOf(value);
      result_rank_.push_back(found != by_name_.end() ? found->second
                             : home == kEverywhere   ? 0
                                                     : home);
    }
  }

  // Of what is computed wherever it is needed: on which ranks, and how early.
  void placeCopies(Operation* op) {
    const auto need = [&](int rank, int slot) {
      auto [entry, is_new] = copies_[op].try_emplace(rank, slot);
      if (!is_new) entry->second = std::min(entry->second, slot);
    };
    for (Operation* user : op->getUsers()) {
      if (user == main_.front().getTerminator()) continue;
      if (home_[user] != kEverywhere)
        need(home_[user], slot_[user]);
      else
        for (auto [rank, slot] : copies_[user]) need(rank, slot);
    }
    Operation* terminator = main_.front().getTerminator();
    for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
      if (value.getDefiningOp() == op)
        need(result_rank_[i], end(result_rank_[i]));
  }

  void findTransfers() {
    std::set<std::pair<const void*, int>> known;
    const auto note = [&](Value value, int to) {
      const int from = homeOf(value);
      if (from == kEverywhere || from == to ||
          !known.insert({value.getAsOpaquePointer(), to}).second)
        return;
      transfers_.push_back({value, from, to});
    };
    for (Operation* op : body_)
      for (Value operand : op->getOperands())
        for (int rank : ranksOf(op)) note(operand, rank);
    Operation* terminator = main_.front().getTerminator();
    for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
      note(value, result_rank_[i]);
    // In the order in which the sender computes.
    llvm::stable_sort(transfers_, [&](const Transfer& a, const Transfer& b) {
      return timeOf(a.value) < timeOf(b.value);
    });
  }

  std::pair<int, int> timeOf(Value value) const {
    Operation* producer = value.getDefiningOp();
    if (!producer)
      return {-1, static_cast<int>(
                      llvm::cast<mlir::BlockArgument>(value).getArgNumber())};
    return {slot_.lookup(producer), number_.lookup(producer)};
  }

  SmallVector<int> ranksOf(Operation* op) const {
    if (home_.lookup(op) != kEverywhere) return {home_.lookup(op)};
    SmallVector<int> ranks;
    if (auto found = copies_.find(op); found != copies_.end())
      for (auto [rank, slot] : found->second) ranks.push_back(rank);
    return ranks;
  }

  SmallVector<Operation*> orderOf(int rank) const {
    SmallVector<std::tuple<int, int, Operation*>> order;
    for (Operation* op : body_) {
      if (home_.lookup(op) == rank) {
        order.push_back({slot_.lookup(op), number_.lookup(op), op});
      } else if (auto found = copies_.find(op); found != copies_.end()) {
        if (auto slot = found->second.find(rank); slot != found->second.end())
          order.push_back({slot->second, number_.lookup(op), op});
      }
    }
    llvm::sort(order);
    SmallVector<Operation*> ops;
    for (auto& [slot, number, op] : order) ops.push_back(op);
    return ops;
  }

  // By sender, indices into transfers_; the last one comes first.
  std::map<int, SmallVector<size_t>> receivesOf(int rank) const {
    std::map<int, SmallVector<size_t>> receives;
    for (size_t i = transfers_.size(); i-- > 0;)
      if (transfers_[i].to == rank) receives[transfers_[i].from].push_back(i);
    return receives;
  }

  void sendAll(int rank, mlir::OpBuilder& builder, mlir::IRMapping& map,
               Operation* producer) {
    for (const Transfer& transfer : transfers_)
      if (transfer.from == rank && transfer.value.getDefiningOp() == producer)
        dist::SendOp::create(builder, transfer.value.getLoc(),
                             map.lookup(transfer.value), axes_, transfer.to,
                             /*why=*/nullptr);
  }

  // Takes what `op` reads, and what its senders sent before that.
  void receiveFor(int rank, Operation* op, mlir::OpBuilder& builder,
                  mlir::IRMapping& map,
                  std::map<int, SmallVector<size_t>>& receives) {
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      const int from = homeOf(operand);
      if (from == kEverywhere || from == rank) continue;
      if (op == main_.front().getTerminator() && result_rank_[i] != rank)
        continue;
      SmallVector<size_t>& open = receives[from];
      const auto isOpen = [&] {
        return llvm::any_of(
            open, [&](size_t t) { return transfers_[t].value == operand; });
      };
      while (isOpen()) receive(transfers_[open.pop_back_val()], builder, map);
    }
  }

  void receive(const Transfer& transfer, mlir::OpBuilder& builder,
               mlir::IRMapping& map) {
    auto received = dist::ReceiveOp::create(builder, transfer.value.getLoc(),
                                            transfer.value.getType(), axes_,
                                            transfer.from, /*why=*/nullptr);
    if (dist::ShardingAttr sharding = sharding::shardingOf(transfer.value))
      sharding::setSharding(received.getResult(), sharding);
    map.lookup(transfer.value).replaceAllUsesExcept(received.getResult(), {});
    map.map(transfer.value, received.getResult());
  }

  // Leaves out what belongs to other ranks.
  void finish(int rank, FuncOp main, mlir::IRMapping& map) {
    Operation* terminator = main.front().getTerminator();
    for (unsigned i = result_rank_.size(); i-- > 0;) {
      if (result_rank_[i] == rank) continue;
      terminator->eraseOperand(i);
      (void)main.eraseResult(i);
    }
    llvm::DenseSet<Operation*> own;
    for (Operation* op : orderOf(rank)) own.insert(map.lookup(op));
    for (Operation& op :
         llvm::make_early_inc_range(llvm::reverse(main.front()))) {
      if (&op == terminator || own.contains(&op) ||
          llvm::isa<dist::SendOp, dist::ReceiveOp>(op))
        continue;
      op.dropAllUses();
      op.erase();
    }
    for (unsigned i = main.getNumArguments(); i-- > 0;)
      if (main.getArgument(i).use_empty()) (void)main.eraseArgument(i);
  }

  llvm::StringRef text(mlir::BlockArgument argument, const char* name) {
    auto attr =
        main_.getArgAttrOfType<mlir::StringAttr>(argument.getArgNumber(), name);
    return attr ? attr.getValue() : llvm::StringRef();
  }
  llvm::StringRef updated(unsigned result) {
    auto attr =
        main_.getResultAttrOfType<mlir::StringAttr>(result, nn::kUpdatesAttr);
    return attr ? attr.getValue() : llvm::StringRef();
  }

  mlir::ModuleOp module_;
  dist::AxesAttr axes_;
  const core::Schedule& schedule_;
  FuncOp main_;
  SmallVector<Operation*> body_;  // of main_, with their numbers
  llvm::DenseMap<Operation*, int> number_;
  // The rank of an operation, and after which of the rank's cells it comes, or
  // which it is.
  llvm::DenseMap<Operation*, int> home_, slot_;
  llvm::DenseMap<Value, int> owner_;         // of stored tensors
  llvm::StringMap<int> by_name_;             // the same
  llvm::DenseMap<Operation*, int> updates_;  // calls of optimizers
  SmallVector<int> result_rank_;
  // Of operations that are computed wherever they are needed: slots by rank.
  llvm::DenseMap<Operation*, std::map<int, int>> copies_;
  std::vector<Transfer> transfers_;
};

}  // namespace

FailureOr<SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>> cutStages(
    mlir::ModuleOp module, dist::AxesAttr axes,
    const core::Schedule& schedule) {
  Cutter cutter(module, axes, schedule);
  if (mlir::failed(cutter.place())) return failure();
  SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> programs;
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    programs.push_back(cutter.programOf(rank));
  return programs;
}

}  // namespace partita::pipeline
