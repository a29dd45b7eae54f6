// Starts collectives early and awaits them late; see passes.td. The order of a
// function is decided first, then the collectives in flight.
#include "compiler/memory/lifetimes.h"
#include "compiler/memory/passes.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/entries.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::memory {

#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "compiler/memory/passes.h.inc"

namespace {

// An operation of the nn dialect, and its attribute that names a function.
constexpr char kLoop[] = "nn.loop";
constexpr char kBodyAttr[] = "body";

using exec::CollectiveOp;
using mlir::Operation;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// The runtime's limit on collectives in flight (kMaxStarted in
// runtime/program).
constexpr size_t kMostInFlight = 64;

// Light operations move along with the operations that need them.
bool isLight(Operation* op) {
  return llvm::isa<exec::LaunchOp, exec::ViewOp>(op);
}

// Work that is worth a collective beside it.
bool isWork(Operation& op) {
  return llvm::isa<CallOp, exec::GemmOp, exec::GroupedGemmOp, exec::ConvOp>(op);
}

bool moves(CollectiveOp op) {
  return op.getGroupSize() > 1 &&
         op.getKind() != exec::CollectiveKind::kAllSlice &&
         !op.getResult().use_empty();
}

int64_t bytesOf(CollectiveOp op) {
  return exec::bufferBytes(
             llvm::cast<mlir::RankedTensorType>(op.getInput().getType())) +
         exec::bufferBytes(
             llvm::cast<mlir::RankedTensorType>(op.getResult().getType()));
}

// A collective and the operation before which it is awaited.
struct Flight {
  CollectiveOp collective;
  Operation* end;
};

class Overlap {
 public:
  // `ahead`: how many calls before its use a gather of arguments starts.
  // `starts_rows`: rows may be started. `rows_only`: nothing else may.
  Overlap(FuncOp function, int64_t most_bytes, int64_t ahead, bool starts_rows,
          bool rows_only = false)
      : function_(function),
        most_bytes_(most_bytes),
        ahead_(ahead),
        starts_rows_(starts_rows),
        rows_only_(rows_only) {}

  // Returns the number of started collectives.
  int64_t run() {
    hoistConstants();
    const auto all = llvm::to_vector(function_.getOps<CollectiveOp>());
    for (CollectiveOp op : llvm::reverse(all))
      if (canStart(op) && inFlight(op) > most_bytes_) sendFirst(op);
    for (CollectiveOp op : collectives()) raise(op);
    if (ahead_ > 0) fetchAhead();
    for (CollectiveOp op : collectives()) lowerReaders(op);
    decide();
    int64_t started = 0;
    for (const Flight& flight : flights_)
      if (isWorthIt(flight)) split(flight, ++started);
    return started;
  }

 private:
  bool canStart(CollectiveOp op) const {
    return moves(op) && (op.getTo() ? starts_rows_ : !rows_only_);
  }

  // Constants take no memory that has a lifetime. At the front, they are
  // available wherever their users move.
  void hoistConstants() {
    mlir::Block& body = function_.front();
    for (auto op : llvm::to_vector(function_.getOps<mlir::arith::ConstantOp>()))
      op->moveBefore(&body, body.begin());
  }

  llvm::SmallVector<CollectiveOp> collectives() {
    return llvm::filter_to_vector(
        function_.getOps<CollectiveOp>(), [&](CollectiveOp op) {
          return canStart(op) && inFlight(op) <= most_bytes_;
        });
  }

  // Moves a collective that cannot be in flight behind the next sends before
  // its first user. Another rank waits for those sends, and nothing runs beside
  // the collective. It does not move behind sends of later cells, because its
  // input would live until then.
  static void sendFirst(CollectiveOp op) {
    Operation* end = firstUser(op);
    Operation* send = op->getNextNode();
    while (send != end && !llvm::isa<exec::SendOp>(send))
      send = send->getNextNode();
    if (send == end) return;
    while (llvm::isa_and_present<exec::SendOp>(send->getNextNode()))
      send = send->getNextNode();
    op->moveAfter(send);
  }

  // Bytes that count as in flight. Gathers that are fetched ahead do not count;
  // the number of calls ahead bounds them.
  int64_t inFlight(CollectiveOp op) const {
    return fetched_.contains(op) ? 0 : bytesOf(op);
  }

  // Returns the light operations that only `op` needs, and `op`, in order.
  static llvm::SmallVector<Operation*> feedersOf(CollectiveOp op) {
    llvm::SetVector<Operation*> feeders;
    feeders.insert(op);
    for (size_t i = 0; i < feeders.size(); ++i) {
      for (mlir::Value operand : feeders[i]->getOperands()) {
        Operation* producer = operand.getDefiningOp();
        if (producer && isLight(producer) &&
            llvm::all_of(producer->getUsers(), [&](Operation* user) {
              return feeders.contains(user);
            }))
          feeders.insert(producer);
      }
    }
    llvm::SmallVector<Operation*> order(feeders.begin(), feeders.end());
    llvm::sort(order, [](Operation* a, Operation* b) {
      return a->isBeforeInBlock(b);
    });
    return order;
  }

  // The last operation whose results the feeders need; null if there is none.
  static Operation* lastNeeded(llvm::ArrayRef<Operation*> feeders) {
    const llvm::SmallPtrSet<Operation*, 8> feeder_set(feeders.begin(),
                                                      feeders.end());
    Operation* last = nullptr;
    for (Operation* feeder : feeders) {
      for (mlir::Value operand : feeder->getOperands()) {
        Operation* producer = operand.getDefiningOp();
        if (!producer || feeder_set.contains(producer) ||
            llvm::isa<mlir::arith::ConstantOp>(producer))
          continue;
        if (!last || last->isBeforeInBlock(producer)) last = producer;
      }
    }
    return last;
  }

  // Moves a collective up to where its operands are available, with the light
  // operations that pack them. It stays if it needs only arguments. Feeders
  // before that point stay, too: sums of earlier microbatches' gradients would
  // keep those gradients alive until then.
  static void raise(CollectiveOp op) {
    llvm::SmallVector<Operation*> feeders = feedersOf(op);
    Operation* last = lastNeeded(feeders);
    if (!last) return;
    // Another rank waits for these sends.
    while (llvm::isa_and_present<exec::SendOp>(last->getNextNode()))
      last = last->getNextNode();
    llvm::erase_if(feeders, [&](Operation* feeder) {
      return feeder->isBeforeInBlock(last);
    });
    for (Operation* feeder : feeders) {
      feeder->moveAfter(last);
      last = feeder;
    }
  }

  // Moves gathers of arguments in front of the call that is `ahead_` calls
  // before their use.
  void fetchAhead() {
    std::vector<CallOp> calls(function_.getOps<CallOp>().begin(),
                              function_.getOps<CallOp>().end());
    for (auto op : llvm::to_vector(function_.getOps<CollectiveOp>())) {
      if (op.getKind() != exec::CollectiveKind::kAllGather || !canStart(op))
        continue;
      const llvm::SmallVector<Operation*> feeders = feedersOf(op);
      if (lastNeeded(feeders)) continue;
      const auto next = llvm::partition_point(
          calls, [&](CallOp call) { return call->isBeforeInBlock(op); });
      const int64_t before = next - calls.begin();
      if (before == 0) continue;
      fetched_.insert(op);
      for (Operation* feeder : feeders)
        feeder->moveBefore(calls[std::max<int64_t>(before - ahead_, 0)]);
    }
  }

  // Moves light operations that read the result down to the first other
  // operation that needs them.
  static void lowerReaders(CollectiveOp op) {
    llvm::SmallPtrSet<Operation*, 16> dependent = {op};
    llvm::SmallVector<Operation*> light;
    Operation* next = op->getNextNode();
    for (; next; next = next->getNextNode()) {
      const bool depends =
          llvm::any_of(next->getOperands(), [&](mlir::Value operand) {
            return dependent.contains(operand.getDefiningOp());
          });
      if (!depends) continue;
      if (!isLight(next)) break;
      dependent.insert(next);
      light.push_back(next);
    }
    for (Operation* reader : light) reader->moveBefore(next);
  }

  static Operation* firstUser(CollectiveOp op) {
    Operation* first = nullptr;
    for (Operation* user : op.getResult().getUsers())
      if (!first || user->isBeforeInBlock(first)) first = user;
    return first;
  }

  // Awaits `flight` before `op`. Light operations that unpack the result move
  // along if their other operands are available there, which results
  // `in_flight` are not. Otherwise the awaited result would take memory for
  // longer.
  static void awaitBefore(Flight& flight, Operation* op,
                          const llvm::SmallPtrSetImpl<Operation*>& in_flight) {
    llvm::SmallPtrSet<mlir::Operation*, 16> readers = {flight.collective};
    for (Operation *at = op, *next = nullptr; at; at = next) {
      next = at->getNextNode();
      const auto reads = [&](mlir::Value operand) {
        return readers.contains(operand.getDefiningOp());
      };
      const auto is_there = [&](mlir::Value operand) {
        Operation* producer = operand.getDefiningOp();
        return !producer || producer == flight.collective ||
               (producer->isBeforeInBlock(op) && !in_flight.contains(producer));
      };
      if (!isLight(at) || !llvm::any_of(at->getOperands(), reads) ||
          !llvm::all_of(at->getOperands(), is_there))
        continue;
      at->moveBefore(op);
      readers.insert(at);
    }
    flight.end = op;
    if (Operation* first = firstUser(flight.collective);
        first->isBeforeInBlock(op))
      flight.end = first;
  }

  // Decides flights in the order in which they start. If too much would be in
  // flight, the oldest is awaited.
  void decide() {
    llvm::SmallVector<size_t> in_flight;
    for (CollectiveOp op : collectives()) {
      llvm::erase_if(in_flight, [&](size_t i) {
        return !op->isBeforeInBlock(flights_[i].end);
      });
      int64_t bytes = inFlight(op);
      for (size_t i : in_flight) bytes += inFlight(flights_[i].collective);
      while (!in_flight.empty() &&
             (bytes > most_bytes_ || in_flight.size() >= kMostInFlight)) {
        Flight& oldest = flights_[in_flight.front()];
        bytes -= inFlight(oldest.collective);
        llvm::SmallPtrSet<Operation*, 16> open;
        for (size_t i : in_flight) open.insert(flights_[i].collective);
        awaitBefore(oldest, op, open);
        in_flight.erase(in_flight.begin());
      }
      in_flight.push_back(flights_.size());
      flights_.push_back({op, firstUser(op)});
    }
  }

  static bool isWorthIt(const Flight& flight) {
    for (Operation* op = flight.collective->getNextNode(); op != flight.end;
         op = op->getNextNode())
      if (isWork(*op)) return true;
    return false;
  }

  static void split(const Flight& flight, int64_t token) {
    CollectiveOp op = flight.collective;
    mlir::OpBuilder builder(flight.end);
    auto await =
        exec::AwaitOp::create(builder, op.getLoc(), op.getResult().getType(),
                              op.getResult(), op.getInput(), op.getTo(), token);
    op.getResult().replaceAllUsesExcept(await.getResult(), await);
    op.setToken(token);
  }

  FuncOp function_;
  const int64_t most_bytes_, ahead_;
  const bool starts_rows_, rows_only_;
  llvm::SmallPtrSet<Operation*, 16> fetched_;
  std::vector<Flight> flights_;
};

// Functions that loops run. The runtime numbers started collectives once per
// run, so loops start none.
llvm::DenseSet<Operation*> functionsInLoops(mlir::ModuleOp module) {
  mlir::SymbolTable symbols(module);
  llvm::SmallVector<Operation*> open;
  module.walk([&](Operation* op) {
    if (op->getName().getStringRef() == kLoop)
      open.push_back(symbols.lookup(
          op->getAttrOfType<mlir::FlatSymbolRefAttr>(kBodyAttr).getValue()));
  });
  llvm::DenseSet<Operation*> looped;
  while (!open.empty()) {
    Operation* function = open.pop_back_val();
    if (!function || !looped.insert(function).second) continue;
    function->walk(
        [&](CallOp call) { open.push_back(symbols.lookup(call.getCallee())); });
  }
  return looped;
}

class OverlapCollectives
    : public impl::OverlapCollectivesPassBase<OverlapCollectives> {
 public:
  using OverlapCollectivesPassBase::OverlapCollectivesPassBase;

  void runOnOperation() override {
    llvm::SmallPtrSet<Operation*, 4> mains;
    for (const exec::Entry& entry : exec::entriesOf(getOperation())) {
      started += Overlap(entry.main, most_bytes, ahead, rows).run();
      mains.insert(entry.main);
    }
    if (!rows) return;
    const llvm::DenseSet<Operation*> looped = functionsInLoops(getOperation());
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      const auto collectives = function.getOps<CollectiveOp>();
      const bool has_rows = llvm::any_of(
          collectives, [](CollectiveOp op) { return op.getTo() != nullptr; });
      if (has_rows && !mains.contains(function) && !looped.contains(function))
        started += Overlap(function, most_bytes, /*ahead=*/0,
                           /*starts_rows=*/true, /*rows_only=*/true)
                       .run();
    }
  }
};

}  // namespace
}  // namespace partita::memory
