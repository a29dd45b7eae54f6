// Marked calls have cells; other operations follow their operands.
#include "compiler/pipeline/placement.h"

#include <cmath>
#include <limits>

#include "compiler/autodiff/call_marks.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::pipeline {
namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;

constexpr int kEverywhere = -1;

core::Work workOf(Operation* op) {
  mlir::Attribute backward = op->getAttr(autodiff::kBackwardAttr);
  if (!backward) return core::Work::kForward;
  auto part = llvm::dyn_cast<mlir::StringAttr>(backward);
  if (!part) return core::Work::kBackward;
  return part.getValue() == autodiff::kWeightGradients ? core::Work::kWeightGrad
                                                       : core::Work::kInputGrad;
}

}  // namespace

LogicalResult Placement::find() {
  int index = 0;
  for (Operation& op : main_.front().without_terminator()) {
    body_.push_back(&op);
    number_[&op] = index++;
  }
  if (mlir::failed(placeCalls())) return failure();
  placeArguments();
  for (Operation* op : body_)
    if (!slot_.count(op)) placeUnmarked(op);
  placeResults();
  for (Operation* op : llvm::reverse(body_))
    if (home_.lookup(op) == kEverywhere) placeCopies(op);
  findTransfers();
  return success();
}

// Without training, operations between calls have stages too, since they are
// not outlined into functions.
LogicalResult Placement::placeCalls() {
  const core::CellMap cells(schedule_);
  for (Operation* op : body_) {
    // Operations without a microbatch, such as the count of all targets, have
    // no cell.
    const bool marked =
        op->hasAttrOfType<mlir::IntegerAttr>(autodiff::kStageAttr) &&
        (schedule_.microbatches == 1 || op->hasAttr(autodiff::kMicrobatchAttr));
    if (marked && (llvm::isa<mlir::func::CallOp>(op) || !schedule_.trains) &&
        mlir::failed(placeCall(op, cells)))
      return failure();
  }
  return success();
}

// Both halves of a backward call may run in one cell, but a whole call does not
// run in two.
LogicalResult Placement::placeCall(Operation* op, const core::CellMap& cells) {
  core::Cell cell;
  cell.work = workOf(op);
  cell.stage = static_cast<int>(
      op->getAttrOfType<mlir::IntegerAttr>(autodiff::kStageAttr).getInt());
  if (auto microbatch =
          op->getAttrOfType<mlir::IntegerAttr>(autodiff::kMicrobatchAttr))
    cell.microbatch = static_cast<int>(microbatch.getInt());
  core::CellMap::Place place;
  if (cell.stage >= 0 && cell.stage < schedule_.stages &&
      cell.microbatch >= 0 && cell.microbatch < schedule_.microbatches)
    place = cells.Find(cell);
  if (!place.found() ||
      (cell.work == core::Work::kBackward &&
       schedule_.cells[place.rank][place.position].work != cell.work))
    return op->emitOpError("expected a cell of the schedule, found ")
           << core::ToString(cell);
  home_[op] = place.rank;
  slot_[op] = place.position;
  return success();
}

// Returns the rank of the first marked call that depends on `value`.
int Placement::firstUse(Value value) const {
  Operation* first = nullptr;
  SmallVector<Value> open = {value};
  llvm::DenseSet<Operation*> seen;
  while (!open.empty())
    for (Operation* user : open.pop_back_val().getUsers()) {
      if (!number_.count(user) || !seen.insert(user).second) continue;
      if (!slot_.count(user))
        llvm::append_range(open, user->getResults());
      else if (!first || number_.lookup(user) < number_.lookup(first))
        first = user;
    }
  return first ? home_.lookup(first) : 0;
}

// Updated arguments have one owner; all others are everywhere.
void Placement::placeArguments() {
  llvm::StringSet<> changing;
  for (unsigned i = 0; i < main_.getNumResults(); ++i)
    changing.insert(updated(i));
  for (mlir::BlockArgument argument : main_.getArguments()) {
    const llvm::StringRef name = text(argument, nn::kNameAttr);
    if (text(argument, nn::kKindAttr) == "state" || !changing.contains(name))
      continue;
    owner_[argument] = by_name_[name] = firstUse(argument);
  }
  // States are owned by the rank that owns their parameter.
  Operation* terminator = main_.front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    const llvm::StringRef name = updated(i);
    Operation* update = value.getDefiningOp();
    if (!update || !by_name_.count(name) || slot_.count(update)) continue;
    updates_[update] = by_name_[name];
    // A select may skip the update.
    if (auto choice = llvm::dyn_cast<mlir::arith::SelectOp>(update))
      if (Operation* chosen = choice.getTrueValue().getDefiningOp();
          chosen && !slot_.count(chosen))
        updates_[update = chosen] = by_name_[name];
    for (Value operand : update->getOperands())
      if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(operand);
          argument && text(argument, nn::kKindAttr) == "state") {
        owner_[argument] = by_name_[name];
        by_name_[text(argument, nn::kNameAttr)] = by_name_[name];
      }
  }
  for (mlir::BlockArgument argument : main_.getArguments())
    if (text(argument, nn::kKindAttr) == "state" && !owner_.count(argument)) {
      // Other states, such as the loss scale, belong to the whole step.
      llvm::StringRef name = text(argument, nn::kNameAttr), rest = name;
      unsigned stage = 0;
      const bool is_delayed =
          rest.consume_front(kDelayedPrefix) && !rest.consumeInteger(10, stage);
      owner_[argument] = by_name_[name] =
          is_delayed ? schedule_.rank_of_stage[stage] : 0;
    }
}

int Placement::homeOf(Value value) const {
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
    auto found = owner_.find(argument);
    return found == owner_.end() ? kEverywhere : found->second;
  }
  return home_.lookup(value.getDefiningOp());
}

int Placement::slotOf(Value value) const {
  Operation* producer = value.getDefiningOp();
  return producer ? slot_.lookup(producer) : -1;
}

// Places an operation on the rank of its last operand that is not everywhere,
// as early as possible. If it needs another rank's value and no cell depends on
// it, it runs after all cells. It never waits for another rank's value before
// the clock says that the value exists, so ranks do not deadlock.
void Placement::placeUnmarked(Operation* op) {
  int home = kEverywhere;
  for (Value operand : op->getOperands())
    if (int other = homeOf(operand); other != kEverywhere) home = other;
  if (auto update = updates_.find(op); update != updates_.end())
    home = update->second;
  home_[op] = home;
  int slot = -1;
  double ready = 0;
  bool waits = false;
  for (Value operand : op->getOperands()) {
    const int other = homeOf(operand);
    if (home == kEverywhere || other == kEverywhere) continue;
    ready = std::max(ready, readyAt(operand));
    if (other == home)
      slot = std::max(slot, slotOf(operand));
    else
      waits = true;
  }
  if (waits)
    slot = leadsToCell(op) ? std::max(slot, slotAt(home, ready)) : end(home);
  slot_[op] = slot;
  ready_[op] = std::max(ready, endOf(home, slot));
}

// True if a cell depends on `op`.
bool Placement::leadsToCell(Operation* op) const {
  SmallVector<Operation*> open = {op};
  llvm::DenseSet<Operation*> seen;
  while (!open.empty())
    for (Operation* user : open.pop_back_val()->getUsers()) {
      if (!number_.count(user) || !seen.insert(user).second) continue;
      if (slot_.count(user)) return true;
      open.push_back(user);
    }
  return false;
}

double Placement::readyAt(Value value) const {
  Operation* producer = value.getDefiningOp();
  if (!producer) return 0;
  auto other = ready_.find(producer);
  return other != ready_.end()
             ? other->second
             : endOf(home_.lookup(producer), slot_.lookup(producer));
}

double Placement::endOf(int rank, int slot) const {
  if (slot < 0) return 0;
  if (slot == end(rank)) return std::numeric_limits<double>::infinity();
  return clock_[rank][slot].end;
}

// Returns the last cell that begins before `time`.
int Placement::slotAt(int rank, double time) const {
  if (std::isinf(time)) return end(rank);
  int slot = -1;
  for (const core::TimedCell& cell : clock_[rank])
    if (cell.start < time) ++slot;
  return slot;
}

int Placement::end(int rank) const {
  return static_cast<int>(schedule_.cells[rank].size());
}

void Placement::placeResults() {
  Operation* terminator = main_.front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    auto found = by_name_.find(updated(i));
    const int home = homeOf(value);
    result_rank_.push_back(found != by_name_.end() ? found->second
                           : home == kEverywhere   ? 0
                                                   : home);
  }
}

// Finds the ranks and slots that need an operation that is computed wherever it
// is needed.
void Placement::placeCopies(Operation* op) {
  const auto need = [&](int rank, int slot) {
    auto [entry, is_new] = copies_[op].try_emplace(rank, slot);
    if (!is_new) entry->second = std::min(entry->second, slot);
  };
  for (Operation* user : op->getUsers()) {
    if (user == main_.front().getTerminator()) continue;
    if (home_[user] != kEverywhere) {
      need(home_[user], slot_[user]);
      continue;
    }
    // A copy of the map: an entry for `op` may move its elements.
    const std::map<int, int> copies = copies_.lookup(user);
    for (auto [rank, slot] : copies) need(rank, slot);
  }
  Operation* terminator = main_.front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    if (value.getDefiningOp() == op)
      need(result_rank_[i], end(result_rank_[i]));
}

void Placement::findTransfers() {
  // By value and receiver: the slot of the first use there.
  llvm::MapVector<std::pair<Value, int>, int> uses;
  const auto note = [&](Value value, int to, int slot) {
    const int from = homeOf(value);
    if (from == kEverywhere || from == to) return;
    auto [use, is_new] = uses.insert({{value, to}, slot});
    if (!is_new) use->second = std::min(use->second, slot);
  };
  for (Operation* op : body_)
    for (Value operand : op->getOperands())
      for (auto [rank, slot] : slotsOf(op)) note(operand, rank, slot);
  Operation* terminator = main_.front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    note(value, result_rank_[i], end(result_rank_[i]));
  llvm::DenseSet<int> waiting;  // ranks whose first cell waits for others
  for (const auto& [edge, use] : uses)
    if (use <= 0) waiting.insert(edge.second);
  std::vector<std::pair<std::pair<int, int>, Transfer>> timed;
  for (const auto& [edge, use] : uses) {
    Transfer transfer{edge.first, homeOf(edge.first), edge.second};
    const std::pair<int, int> time =
        sendAfter(transfer, use, waiting.contains(transfer.from));
    timed.push_back({time, transfer});
  }
  llvm::stable_sort(
      timed, [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [time, transfer] : timed) transfers_.push_back(transfer);
}

// Chooses when to send a value that is first used in slot `use`, and returns
// the send time: a slot, and a number within it. Transfers leave in order, so
// large tensors must not precede values that cells wait for. `waits` is true if
// the sender's first cell waits for another rank.
std::pair<int, int> Placement::sendAfter(Transfer& transfer, int use,
                                         bool waits) const {
  const auto& [value, from, to, after] = transfer;
  constexpr int kLast = std::numeric_limits<int>::max();
  Operation* producer = value.getDefiningOp();
  if (use == end(to) && slotOf(value) < end(from)) {
    transfer.after = lastOf(from, end(from) - 1);
    return {end(from) - 1, kLast};
  }
  if (producer) {
    transfer.after = producer;
    return {slotOf(value), number_.lookup(producer)};
  }
  // The value is a stored tensor.
  const int number =
      static_cast<int>(llvm::cast<mlir::BlockArgument>(value).getArgNumber());
  if (waits || use < 0 || clock_[from].empty() ||
      clock_[to][use].start < clock_[from][0].end)
    return {-1, number};
  transfer.after = lastOf(from, 0);
  return {0, kLast};
}

Operation* Placement::lastOf(int rank, int slot) const {
  const SmallVector<Operation*> order = orderOf(rank, slot);
  return order.empty() ? nullptr : order.back();
}

// Returns the slots of an operation, by the ranks that compute it.
std::map<int, int> Placement::slotsOf(Operation* op) const {
  const int home = home_.lookup(op);
  if (home != kEverywhere) return {{home, slot_.lookup(op)}};
  auto found = copies_.find(op);
  return found == copies_.end() ? std::map<int, int>() : found->second;
}

SmallVector<Operation*> Placement::orderOf(int rank, int last_slot) const {
  SmallVector<std::tuple<int, int, Operation*>> order;
  for (Operation* op : body_) {
    const std::map<int, int> slots = slotsOf(op);
    if (auto slot = slots.find(rank);
        slot != slots.end() && slot->second <= last_slot)
      order.push_back({slot->second, number_.lookup(op), op});
  }
  llvm::sort(order);
  SmallVector<Operation*> ops;
  for (auto& [slot, number, op] : order) ops.push_back(op);
  return ops;
}

llvm::StringRef Placement::text(mlir::BlockArgument argument,
                                const char* name) {
  auto attr =
      main_.getArgAttrOfType<mlir::StringAttr>(argument.getArgNumber(), name);
  return attr ? attr.getValue() : llvm::StringRef();
}

llvm::StringRef Placement::updated(unsigned result) {
  auto attr =
      main_.getResultAttrOfType<mlir::StringAttr>(result, nn::kUpdatesAttr);
  return attr ? attr.getValue() : llvm::StringRef();
}

}  // namespace partita::pipeline
