// Classifies a program's memory. Stored tensors have the classes of their
// arguments. A computed value is a gradient if only launches and collectives
// lead from it to an update.
#include "compiler/memory/memory_table.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "compiler/memory/lifetimes.h"
#include "dialects/exec/entries.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::memory {
namespace {

// Argument and result attributes of the nn dialect.
constexpr char kKindAttr[] = "nn.kind";
constexpr char kNameAttr[] = "nn.name";
constexpr char kUpdatesAttr[] = "nn.updates";

using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

int64_t bytesOf(mlir::Type type) {
  return exec::bufferBytes(llvm::cast<mlir::RankedTensorType>(type));
}

llvm::StringRef argumentText(FuncOp function, unsigned i,
                             llvm::StringRef name) {
  auto attr = function.getArgAttrOfType<mlir::StringAttr>(i, name);
  return attr ? attr.getValue() : llvm::StringRef();
}

// Users of a value, including the users of its views, and of launches that
// continue to write it.
llvm::SmallVector<Operation*> usersOf(Value value) {
  llvm::SmallVector<Operation*> users;
  for (mlir::OpOperand& use : value.getUses()) {
    Operation* user = use.getOwner();
    auto launch = llvm::dyn_cast<exec::LaunchOp>(user);
    if (auto view = llvm::dyn_cast<exec::ViewOp>(user))
      llvm::append_range(users, usersOf(view.getResult()));
    else if (launch && use.getOperandNumber() >= launch.getOperands_().size())
      llvm::append_range(
          users, usersOf(launch.getResult(use.getOperandNumber() -
                                          launch.getOperands_().size())));
    else
      users.push_back(user);
  }
  return users;
}

// The operation that computes a value; for exec.launch_pieces also the piece.
std::pair<Operation*, unsigned> makerOf(Value value) {
  auto result = llvm::cast<mlir::OpResult>(value);
  auto pieces = llvm::dyn_cast<exec::LaunchPiecesOp>(result.getOwner());
  return {result.getOwner(), pieces ? pieces.getPieceOf(result) : 0};
}

mlir::OperandRange operandsOf(std::pair<Operation*, unsigned> maker) {
  auto [op, piece] = maker;
  if (auto pieces = llvm::dyn_cast<exec::LaunchPiecesOp>(op))
    return pieces.getOperandsOf(piece);
  return op->getOperands();
}

bool isCommunication(Value value) {
  if (value.getDefiningOp<exec::CollectiveOp>() ||
      value.getDefiningOp<exec::ReceiveOp>())
    return true;
  const llvm::SmallVector<Operation*> users = usersOf(value);
  return llvm::isa_and_present<exec::LaunchOp, exec::LaunchPiecesOp>(
             value.getDefiningOp()) &&
         !users.empty() && llvm::all_of(users, [](Operation* user) {
           return llvm::isa<exec::CollectiveOp, exec::AwaitOp, exec::SendOp>(
               user);
         });
}

class Tabulation {
 public:
  Tabulation(mlir::ModuleOp module, bool states_on_host)
      : symbols_(module), states_on_host_(states_on_host) {}

  MemoryTable run(exec::Entry entry) {
    FuncOp main = entry.main;
    addStored(main);
    if (entry.init) addStored(entry.init);
    for (auto [i, type] : llvm::enumerate(main.getResultTypes()))
      if (!main.getResultAttr(i, kUpdatesAttr))
        add(MemoryClass::kPorts, type, "", main.getLoc());
    findGradients(main);
    addFrame(main, /*outermost=*/true);
    llvm::stable_sort(table_.parts,
                      [](const MemoryPart& a, const MemoryPart& b) {
                        return a.bytes > b.bytes;
                      });
    return std::move(table_);
  }

 private:
  void add(MemoryClass memory_class, mlir::Type type, llvm::StringRef name,
           mlir::Location loc) {
    if (states_on_host_ && memory_class == MemoryClass::kStates) {
      table_.host += bytesOf(type);
      return;
    }
    table_.of(memory_class) += bytesOf(type);
    table_.parts.push_back({memory_class, bytesOf(type), name.str(), loc});
  }

  // Adds arguments. Both functions may have one of the same name.
  void addStored(FuncOp function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      llvm::StringRef kind = argumentText(function, i, kKindAttr);
      llvm::StringRef name = argumentText(function, i, kNameAttr);
      if (!name.empty() && kind != "input" &&
          !stored_.insert(name.str()).second)
        continue;
      add(kind == "state"                   ? MemoryClass::kStates
          : kind == "derived"               ? MemoryClass::kDerived
          : kind == "input" || kind.empty() ? MemoryClass::kPorts
                                            : MemoryClass::kParameters,
          function.getArgumentTypes()[i], name,
          function.getArgument(i).getLoc());
    }
  }

  void findGradients(FuncOp main) {
    llvm::SmallVector<Value> open;
    Operation* terminator = main.front().getTerminator();
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      if (!main.getResultAttr(i, kUpdatesAttr)) continue;
      Value updated = rootOf(terminator->getOperand(i));
      if (auto copy = updated.getDefiningOp<exec::CopyOp>())
        updated = rootOf(copy.getInput());
      if (updated.getDefiningOp() && updates_.insert(makerOf(updated)).second)
        llvm::append_range(open, operandsOf(makerOf(updated)));
    }
    while (!open.empty()) {
      Value value = rootOf(open.pop_back_val());
      Operation* producer = value.getDefiningOp();
      if (!producer || updates_.contains(makerOf(value)) ||
          llvm::isa<mlir::arith::ConstantOp>(producer) ||
          !gradients_.insert(value).second)
        continue;
      if (llvm::isa<exec::LaunchOp, exec::LaunchPiecesOp, exec::CollectiveOp>(
              producer))
        llvm::append_range(open, operandsOf(makerOf(value)));
    }
  }

  MemoryClass classOf(Value value) const {
    const bool gradient = gradients_.contains(value);
    if (gradient && value.getDefiningOp<exec::CollectiveOp>())
      return MemoryClass::kGradients;
    if (isCommunication(value)) return MemoryClass::kCommunication;
    return gradient ? MemoryClass::kGradients : MemoryClass::kActivations;
  }

  // A result or a callee's frame: its bytes in the frame, from step to step.
  struct Placed {
    Value value;  // or
    CallOp call;  // a callee's frame
    int64_t bytes, first, last;
  };

  static std::vector<Placed> placedIn(FuncOp function) {
    const Lifetimes lifetimes(function);
    std::vector<Placed> placed;
    std::map<int64_t, size_t> at;  // the last value at an offset, in `placed`
    for (Operation& op : function.front()) {
      const int64_t step = lifetimes.step.lookup(&op);
      if (auto offsets =
              op.getAttrOfType<mlir::DenseI64ArrayAttr>(exec::kOffsetsAttr))
        for (auto [result, offset] :
             llvm::zip_equal(op.getResults(), offsets.asArrayRef()))
          if (offset >= 0) {
            // A result may take the place of an operand: it is counted then.
            if (const auto before = at.find(offset);
                before != at.end() && placed[before->second].last == step)
              --placed[before->second].last;
            at[offset] = placed.size();
            placed.push_back({result,
                              {},
                              bytesOf(result.getType()),
                              step,
                              lifetimes.end(result)});
          }
      if (auto call = llvm::dyn_cast<CallOp>(op))
        placed.push_back({{}, call, frameOf(call), step, step});
    }
    return placed;
  }

  static int64_t frameOf(CallOp call) {
    auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
        call, call.getCalleeAttr());
    return call->hasAttr(exec::kRepeatsAttr)
               ? exec::repeatedFrameBytes(frameOf(callee),
                                          call.getResultTypes())
               : frameOf(callee);
  }

  static int64_t frameOf(FuncOp function) {
    auto bytes =
        function->getAttrOfType<mlir::IntegerAttr>(exec::kFrameBytesAttr);
    return bytes ? bytes.getInt() : 0;
  }

  // Adds the values that live at the peak of the frame.
  void addFrame(FuncOp function, bool outermost) {
    const std::vector<Placed> placed = placedIn(function);
    // Changes of the live bytes at each step.
    const size_t steps = function.front().getOperations().size();
    std::vector<int64_t> live(steps + 1), gradients(steps + 1);
    const auto count = [](const Placed& p, std::vector<int64_t>& changes) {
      changes[p.first] += p.bytes;
      changes[p.last + 1] -= p.bytes;
    };
    for (const Placed& p : placed) {
      count(p, live);
      if (outermost && p.value && classOf(p.value) == MemoryClass::kGradients)
        count(p, gradients);
    }
    std::partial_sum(live.begin(), live.end(), live.begin());
    std::partial_sum(gradients.begin(), gradients.end(), gradients.begin());
    const int64_t peak =
        std::max_element(live.begin(), live.end()) - live.begin();
    if (outermost)
      table_.most_gradients =
          *std::max_element(gradients.begin(), gradients.end());
    table_.gaps += frameOf(function) - live[peak];
    for (Placed p : placed) {
      if (p.first > peak || p.last < peak) continue;
      if (p.value) {
        add(classOf(p.value), p.value.getType(), "", p.value.getLoc());
        continue;
      }
      if (p.call->hasAttr(exec::kRepeatsAttr)) addIteration(p.call);
      addFrame(symbols_.lookup<FuncOp>(p.call.getCallee()), false);
    }
  }

  // Adds the results of an iteration of a loop.
  void addIteration(CallOp call) {
    for (mlir::Type type : call.getResultTypes()) {
      add(MemoryClass::kActivations, type, "", call.getLoc());
      table_.gaps += exec::repeatedFrameBytes(0, type) - bytesOf(type);
    }
  }

  mlir::SymbolTable symbols_;
  const bool states_on_host_;
  std::set<std::string> stored_;
  llvm::DenseSet<std::pair<Operation*, unsigned>> updates_;  // makers
  llvm::DenseSet<Value> gradients_;
  MemoryTable table_;
};

}  // namespace

std::string nameOf(MemoryClass memory_class, bool key) {
  static constexpr const char* kNames[kMemoryClasses] = {
      "parameters",         "optimizer states", "gradients",
      "activations",        "communication",    "derived from parameters",
      "inputs and outputs", "scratch"};
  std::string name = kNames[static_cast<int>(memory_class)];
  if (key) std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

int64_t MemoryTable::total() const {
  return std::accumulate(std::begin(at_peak), std::end(at_peak), gaps);
}

std::vector<MemoryTable> tabulateMemory(mlir::ModuleOp module,
                                        bool states_on_host) {
  std::vector<MemoryTable> tables;
  for (const exec::Entry& entry : exec::entriesOf(module))
    tables.push_back(Tabulation(module, states_on_host).run(entry));
  return tables;
}

}  // namespace partita::memory
