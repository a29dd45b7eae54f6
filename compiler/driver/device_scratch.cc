// Computes scratch as runtime/cuda reserves it: a workspace of the library, f32
// sums if the library may not finish a product itself, and a copy of a
// convolution's weight in the library's layout.
#include "compiler/driver/device_scratch.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "dialects/exec/attention.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/entries.h"
#include "dialects/nn/dialect.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/IR/SymbolTable.h"
#include "runtime/program/library_limits.h"

namespace partita::driver {
namespace {

constexpr int64_t kPart = 256;  // parts of the scratch begin at multiples

mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

// True if an own kernel may have to finish the product, from its f32 sums: the
// library lacks some activations, and an installed version may refuse others.
// It adds a bias of 16 bits only to products of floats of 8 bits.
bool mayFinishItself(exec::GemmOp gemm) {
  const bool has_wide_bias =
      gemm.getBias() &&
      llvm::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(
          typeOf(gemm.getLhs()).getElementType()) &&
      typeOf(gemm.getResult()).getElementType().isF32();
  return gemm.getActivation() != exec::Activation::kNone || has_wide_bias;
}

// Partial sums of a factor, in case that the library refuses to sum it.
int64_t factorSums(exec::GemmOp gemm) {
  const int64_t parts =
      llvm::divideCeil(gemm.getSizes()[3], program::kFactorSumRows);
  int64_t sums = 0;
  for (mlir::Value value : {gemm.getLhsSums(), gemm.getRhsSums()})
    if (value) sums += typeOf(value).getNumElements() * parts * 4;
  return sums;
}

int64_t scratchOf(exec::GemmOp gemm) {
  const int64_t sums =
      mayFinishItself(gemm) ? typeOf(gemm.getResult()).getNumElements() * 4 : 0;
  return llvm::alignTo(sums, kPart) + program::kProductWorkspaceBytes +
         factorSums(gemm);
}

int64_t scratchOf(exec::ConvOp conv) {
  // The weight is the result of a weight gradient, an operand otherwise.
  auto weight = typeOf(conv.getDirection() == exec::ConvDirection::kWeightGrad
                           ? conv.getResult()
                           : conv.getWeight());
  const int64_t channels = weight.getDimSize(1);
  const int64_t places =
      weight.getNumElements() / (weight.getDimSize(0) * channels);
  const bool moves = conv.getChannelsLast() && channels > 1 && places > 1;
  return (moves ? llvm::alignTo(exec::bufferBytes(weight), kPart) : 0) +
         program::ConvolutionWorkspaceBytes(
             exec::bufferBytes(typeOf(conv.getInput())) +
             exec::bufferBytes(typeOf(conv.getWeight())) +
             exec::bufferBytes(typeOf(conv.getResult())));
}

// Transfer slots of one entry, as runtime/executor creates them.
class Slots {
 public:
  explicit Slots(mlir::SymbolTable& symbols) : symbols_(symbols) {}

  void add(mlir::func::FuncOp function) {
    for (mlir::Operation& op : function.front()) {
      if (auto call = llvm::dyn_cast<mlir::func::CallOp>(op))
        add(symbols_.lookup<mlir::func::FuncOp>(call.getCallee()));
      else if (auto send = llvm::dyn_cast<exec::SendOp>(op))
        add(send);
    }
  }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto& [peer, receiver] : receivers_)
      for (int64_t bytes : receiver.bytes) sum += bytes;
    return sum;
  }

 private:
  struct Receiver {
    size_t sends = 0;
    std::array<int64_t, program::kTransferSlots> bytes = {};
  };

  void add(exec::SendOp send) {
    Receiver& receiver = receivers_[send.getPeer()];
    int64_t& bytes = receiver.bytes[receiver.sends++ % receiver.bytes.size()];
    bytes = std::max<int64_t>(
        bytes, llvm::alignTo(exec::bufferBytes(typeOf(send.getInput())),
                             program::kTransferSlotAlignment));
  }

  mlir::SymbolTable& symbols_;
  std::map<int64_t, Receiver> receivers_;  // by peer
};

program::PackedCollective packed(exec::CollectiveOp op) {
  using Kind = program::PackedCollective::Kind;
  program::PackedCollective packed;
  switch (op.getKind()) {
    case exec::CollectiveKind::kReduceScatter:
      packed.kind = Kind::kReduceScatter;
      break;
    case exec::CollectiveKind::kAllGather:
      packed.kind = Kind::kAllGather;
      break;
    case exec::CollectiveKind::kExchange:
      packed.kind = Kind::kExchange;
      break;
    case exec::CollectiveKind::kAllToAll:
      packed.kind = Kind::kAllToAll;
      break;
    case exec::CollectiveKind::kSendRows:
    case exec::CollectiveKind::kReturnRows:
      packed.kind = Kind::kRows;
      packed.destinations = op.getSize();
      break;
    default:
      break;
  }
  auto input = typeOf(op.getInput()), output = typeOf(op.getResult());
  packed.input_shape = input.getShape().vec();
  packed.output_shape = output.getShape().vec();
  packed.dim = op.getDim();
  packed.step = op.getStep();
  packed.element_bytes = llvm::divideCeil(input.getElementTypeBitWidth(), 8);
  packed.devices = op.getGroupSize();
  return packed;
}

// Buffers of one entry's exchanges, as runtime/cuda/nccl creates them: started
// collectives have groups and scratch of their own, and each sender that the
// device receives from has a group, too.
class Exchanges {
 public:
  explicit Exchanges(mlir::SymbolTable& symbols) : symbols_(symbols) {}

  void add(mlir::func::FuncOp function) {
    for (mlir::Operation& op : function.front()) {
      if (auto call = llvm::dyn_cast<mlir::func::CallOp>(op))
        add(symbols_.lookup<mlir::func::FuncOp>(call.getCallee()));
      else if (auto collective = llvm::dyn_cast<exec::CollectiveOp>(op))
        add(collective);
      else if (auto receive = llvm::dyn_cast<exec::ReceiveOp>(op))
        senders_.insert(receive.getPeer());
    }
  }
  int64_t bytes() const {
    return static_cast<int64_t>(groups_.size() + senders_.size()) *
               program::kGroupBytes +
           scratch_[0] + scratch_[1];
  }

 private:
  void add(exec::CollectiveOp op) {
    if (op.getGroupSize() < 2) return;
    const bool beside = op.getToken() > 0;
    groups_.insert({beside, op.getAxes().vec()});
    scratch_[beside] =
        std::max(scratch_[beside], program::PackingBytes(packed(op)));
  }

  mlir::SymbolTable& symbols_;
  std::set<std::pair<bool, std::vector<int64_t>>> groups_;
  std::set<int64_t> senders_;
  std::array<int64_t, 2> scratch_ = {};  // of others, and of started ones
};

}  // namespace

std::vector<int64_t> exchangeBuffers(mlir::ModuleOp module) {
  mlir::SymbolTable symbols(module);
  std::vector<int64_t> bytes;
  for (const exec::Entry& entry : exec::entriesOf(module)) {
    Exchanges exchanges(symbols);
    exchanges.add(entry.main);
    bytes.push_back(exchanges.bytes());
  }
  return bytes;
}

std::vector<int64_t> transferSlots(mlir::ModuleOp module) {
  mlir::SymbolTable symbols(module);
  std::vector<int64_t> bytes;
  for (const exec::Entry& entry : exec::entriesOf(module)) {
    Slots slots(symbols);
    slots.add(entry.main);
    bytes.push_back(slots.bytes());
  }
  return bytes;
}

std::vector<int64_t> nextInputs(mlir::ModuleOp module) {
  std::vector<int64_t> bytes;
  bool trains = false;
  for (const exec::Entry& entry : exec::entriesOf(module)) {
    mlir::func::FuncOp main = entry.main;
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      trains = trains || main.getResultAttr(i, nn::kUpdatesAttr);
    bytes.push_back(0);
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
      if ((!kind || kind.getValue() == "input") &&
          !main.getArgAttr(i, nn::kRoleAttr))
        bytes.back() += exec::bufferBytes(typeOf(main.getArgument(i)));
    }
  }
  return trains ? bytes : std::vector<int64_t>(bytes.size(), 0);
}

int64_t deviceScratch(mlir::ModuleOp module) {
  int64_t most = 0;
  module.walk([&](mlir::Operation* op) {
    int64_t bytes = 0;
    if (auto launch = llvm::dyn_cast<exec::LaunchOp>(op))
      bytes = std::max<int64_t>(
          launch.getScratch().value_or(0),
          exec::attentionOf(launch) ? program::kAttentionWorkspaceBytes : 0);
    else if (auto gemm = llvm::dyn_cast<exec::GemmOp>(op))
      bytes = scratchOf(gemm);
    else if (auto conv = llvm::dyn_cast<exec::ConvOp>(op))
      bytes = scratchOf(conv);
    most = std::max(most, bytes);
  });
  return most;
}

}  // namespace partita::driver
