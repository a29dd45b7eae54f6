// Stores results of attention as products read them; see passes.td.
#include <optional>

#include "compiler/kernels/layouts_of_calls.h"
#include "compiler/kernels/passes.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace partita::kernels {

#define GEN_PASS_DEF_STOREBYTOKENSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// Exchanges heads and tokens; its own inverse.
constexpr int64_t kPerm[] = {0, 2, 1, 3};

bool exchangesHeads(mlir::Operation* op) {
  auto transpose = llvm::dyn_cast<nn::TransposeOp>(op);
  return transpose && transpose.getPerm() == llvm::ArrayRef<int64_t>(kPerm);
}

// The transposed value if `value` is a result of attention that is returned
// once and otherwise only transposed.
nn::TransposeOp transposedResult(Value value) {
  if (!value.getDefiningOp<nn::AttentionOp>() ||
      llvm::range_size(value.getUses()) != 2)
    return nullptr;
  nn::TransposeOp transposed;
  for (mlir::Operation* user : value.getUsers())
    if (exchangesHeads(user)) transposed = llvm::cast<nn::TransposeOp>(user);
  return transposed;
}

// Arguments of private functions.
using Arguments = llvm::SetVector<std::pair<FuncOp, unsigned>>;
using Calls = llvm::StringMap<SmallVector<CallOp>>;

class Storer {
 public:
  explicit Storer(mlir::ModuleOp module)
      : module_(module), calls_(findCalls(module)) {}

  // Changes the results of a function. Returns the number of changes.
  int64_t run(FuncOp function) {
    int64_t changed = 0;
    const auto calls = calls_.find(function.getName());
    if (calls == calls_.end()) return 0;
    mlir::Operation* terminator = function.front().getTerminator();
    for (unsigned index = 0; index < function.getNumResults(); ++index) {
      nn::TransposeOp transposed =
          transposedResult(terminator->getOperand(index));
      if (!transposed) continue;
      const std::optional<Arguments> readers =
          readersOf(function, index, calls->second);
      if (!readers) continue;
      terminator->setOperand(index, transposed.getResult());
      updateType(function);
      for (CallOp call : calls->second)
        call.getResult(index).setType(transposed.getType());
      for (auto [reader, argument] : *readers)
        transposeArgument(reader, argument, transposed.getType());
      ++changed;
    }
    return changed;
  }

 private:
  // The arguments that take the result. Absent if it has other uses, or if
  // these arguments take other values as well.
  std::optional<Arguments> readersOf(FuncOp function, unsigned index,
                                     llvm::ArrayRef<CallOp> calls) {
    Arguments readers;
    for (CallOp call : calls)
      for (mlir::OpOperand& use : call.getResult(index).getUses()) {
        auto reader = llvm::dyn_cast<CallOp>(use.getOwner());
        if (!reader || !calls_.contains(reader.getCallee()))
          return std::nullopt;
        readers.insert({module_.lookupSymbol<FuncOp>(reader.getCallee()),
                        use.getOperandNumber()});
      }
    for (auto [reader, argument] : readers)
      for (CallOp call : calls_.lookup(FuncOp(reader).getName())) {
        auto result = llvm::dyn_cast<mlir::OpResult>(call.getOperand(argument));
        auto maker =
            result ? llvm::dyn_cast<CallOp>(result.getOwner()) : CallOp();
        if (!maker || maker.getCallee() != function.getName() ||
            result.getResultNumber() != index)
          return std::nullopt;
      }
    return readers;
  }

  static void transposeArgument(FuncOp function, unsigned index,
                                mlir::Type type) {
    mlir::BlockArgument argument = function.getArgument(index);
    argument.setType(type);
    auto builder = mlir::OpBuilder::atBlockBegin(&function.front());
    auto back =
        nn::TransposeOp::create(builder, function.getLoc(), argument, kPerm);
    argument.replaceAllUsesExcept(back, back);
    updateType(function);
    // The names of dimensions describe the old order.
    function.removeArgAttr(index, "nn.dims");
  }

  mlir::ModuleOp module_;
  const Calls calls_;
};

class StoreByTokens : public impl::StoreByTokensPassBase<StoreByTokens> {
 public:
  void runOnOperation() override {
    Storer storer(getOperation());
    for (FuncOp function : getOperation().getOps<FuncOp>())
      results += storer.run(function);
  }
};

}  // namespace
}  // namespace partita::kernels
