// Gives signatures of layer functions the layout of their bodies, so that
// images stay channels-last from layer to layer.
#include "compiler/kernels/layouts_of_calls.h"

#include "compiler/kernels/image_norms.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;
using nn::TransposeOp;

using Perm = SmallVector<int64_t>;

// The permutation from channels-first to channels-last.
Perm channelsLast(int64_t rank) {
  Perm perm = {0};
  for (int64_t dim = 2; dim < rank; ++dim) perm.push_back(dim);
  perm.push_back(1);
  return perm;
}
Perm channelsFirst(int64_t rank) {
  Perm perm = {0, rank - 1};
  for (int64_t dim = 1; dim + 1 < rank; ++dim) perm.push_back(dim);
  return perm;
}

// The rank of a value that may be an image with channels; none for other types.
std::optional<int64_t> imageRank(Value value) {
  auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
  if (!type || type.getRank() < 4) return std::nullopt;
  return type.getRank();
}

bool isTransposeBy(mlir::Operation* op, ArrayRef<int64_t> perm) {
  auto transpose = llvm::dyn_cast_or_null<TransposeOp>(op);
  return transpose && transpose.getPerm() == perm;
}

// True if a transpose sinks below an elementwise operation whose operands in
// `turned` are transposed. Each other operand must be transposed back, or be
// the same in any order.
bool sinksBelow(mlir::Operation* op, const llvm::DenseSet<Value>& turned,
                ArrayRef<int64_t> inverse) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return turned.contains(operand) || canUntranspose(operand, inverse);
  });
}

// The norm of an image that `op` prepares, if a transpose by `perm` can move
// below it.
std::optional<ImageNorm> normBehind(mlir::Operation* op,
                                    ArrayRef<int64_t> perm) {
  if (!llvm::isa<nn::ReshapeOp>(op) || !op->hasOneUse()) return std::nullopt;
  auto norm = llvm::dyn_cast<nn::LayerNormOp>(*op->getUsers().begin());
  if (!norm) return std::nullopt;
  std::optional<ImageNorm> result = matchImageNorm(norm);
  return result && result->allows(perm) ? result : std::nullopt;
}

// True if `value` is transposed by `perm`, directly or behind elementwise work,
// pooling and norms of images. Also true if such work meets an operand
// transposed by `inverse`, and that transpose would sink if `value` were
// transposed.
bool isTransposed(Value value, ArrayRef<int64_t> perm,
                  ArrayRef<int64_t> inverse) {
  SmallVector<Value> open = {value};
  llvm::DenseSet<Value> seen = {value}, turned = {value};
  while (!open.empty()) {
    const Value next = open.pop_back_val();
    for (mlir::Operation* user : next.getUsers()) {
      if (isTransposeBy(user, perm)) return true;
      if (auto norm = normBehind(user, inverse))
        for (nn::ReshapeOp image : norm->images)
          if (seen.insert(image).second) open.push_back(image);
      const bool elementwise =
          mlir::OpTrait::hasElementwiseMappableTraits(user);
      if (!elementwise &&
          !llvm::isa<nn::ReduceWindowOp, nn::BatchNormOp, nn::PadOp>(user))
        continue;
      if (elementwise && turned.contains(next) &&
          sinksBelow(user, turned, inverse)) {
        turned.insert(user->getResult(0));
        if (llvm::any_of(user->getOperands(), [&](Value operand) {
              return isTransposeBy(operand.getDefiningOp(), inverse);
            }))
          return true;
      }
      if (seen.insert(user->getResult(0)).second)
        open.push_back(user->getResult(0));
    }
  }
  return false;
}

bool moveArgument(FuncOp function, unsigned index, ArrayRef<CallOp> calls) {
  mlir::BlockArgument argument = function.getArgument(index);
  const std::optional<int64_t> rank = imageRank(argument);
  if (!rank) return false;
  const Perm perm = channelsLast(*rank), inverse = channelsFirst(*rank);
  if (!isTransposed(argument, perm, inverse)) return false;
  for (CallOp call : calls) {
    mlir::OpBuilder builder(call);
    call.setOperand(index, TransposeOp::create(builder, call.getLoc(),
                                               call.getOperand(index), perm));
  }
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&function.front());
  auto type = llvm::cast<mlir::RankedTensorType>(argument.getType());
  SmallVector<int64_t> shape;
  for (int64_t dim : perm) shape.push_back(type.getDimSize(dim));
  argument.setType(type.clone(shape));
  auto back =
      TransposeOp::create(builder, function.getLoc(), argument, inverse);
  argument.replaceAllUsesExcept(back, back);
  // The names of dimensions describe the old order.
  function.removeArgAttr(index, "nn.dims");
  return true;
}

bool moveResult(FuncOp function, unsigned index, ArrayRef<CallOp> calls) {
  mlir::Operation* terminator = function.front().getTerminator();
  auto transpose = terminator->getOperand(index).getDefiningOp<TransposeOp>();
  if (!transpose || !imageRank(transpose)) return false;
  const Perm perm = channelsFirst(*imageRank(transpose));
  if (transpose.getPerm() != ArrayRef<int64_t>(perm)) return false;
  terminator->setOperand(index, transpose.getInput());
  for (CallOp call : calls) {
    mlir::OpBuilder builder(call->getContext());
    builder.setInsertionPointAfter(call);
    Value result = call.getResult(index);
    result.setType(transpose.getInput().getType());
    auto back = TransposeOp::create(builder, call.getLoc(), result, perm);
    result.replaceAllUsesExcept(back, back);
  }
  return true;
}

}  // namespace

llvm::StringMap<SmallVector<CallOp>> findCalls(mlir::ModuleOp module) {
  llvm::StringMap<SmallVector<CallOp>> calls;
  for (FuncOp function : module.getOps<FuncOp>())
    if (function.isPrivate() && !function.isExternal())
      calls[function.getName()] = {};
  // Search the module once: a search for one function costs as much.
  const auto uses = mlir::SymbolTable::getSymbolUses(&module.getBodyRegion());
  if (!uses) return {};
  for (const mlir::SymbolTable::SymbolUse& use : *uses) {
    const llvm::StringRef name = use.getSymbolRef().getRootReference();
    auto known = calls.find(name);
    if (known == calls.end()) continue;
    if (auto call = llvm::dyn_cast<CallOp>(use.getUser()))
      known->second.push_back(call);
    else
      calls.erase(known);
  }
  return calls;
}

void updateType(FuncOp function) {
  function.setType(mlir::FunctionType::get(
      function.getContext(), function.front().getArgumentTypes(),
      function.front().getTerminator()->getOperandTypes()));
}

llvm::SetVector<FuncOp> moveTransposesToCallers(mlir::ModuleOp module,
                                                MovedBorders& moved) {
  llvm::SetVector<FuncOp> touched;
  const llvm::StringMap<SmallVector<CallOp>> all = findCalls(module);
  for (FuncOp function : module.getOps<FuncOp>()) {
    const auto calls = all.find(function.getName());
    if (calls == all.end()) continue;
    bool changed = false;
    const auto once = [&](auto& borders, unsigned index, auto move) {
      if (borders.contains({function, index}) ||
          !move(function, index, calls->second))
        return;
      borders.insert({function, index});
      changed = true;
    };
    for (unsigned index = 0; index < function.getNumArguments(); ++index)
      once(moved.arguments, index, moveArgument);
    for (unsigned index = 0; index < function.getNumResults(); ++index)
      once(moved.results, index, moveResult);
    if (!changed) continue;
    updateType(function);
    touched.insert(function);
    for (CallOp call : calls->second)
      touched.insert(call->getParentOfType<FuncOp>());
  }
  return touched;
}

}  // namespace partita::kernels
