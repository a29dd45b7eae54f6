// Activations and sums that the convolution library computes on the way; see
// passes.td.
#include <cmath>
#include <optional>

#include "compiler/kernels/passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

namespace partita::kernels {

#define GEN_PASS_DEF_FUSEACTIVATIONSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

namespace arith = mlir::arith;
using exec::Activation;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

bool isSplat(Value value, double expected) {
  mlir::DenseFPElementsAttr constant;
  if (!mlir::matchPattern(value, mlir::m_Constant(&constant)) ||
      !constant.isSplat())
    return false;
  const double found =
      constant.getSplatValue<llvm::APFloat>().convertToDouble();
  return std::abs(found - expected) <= 1e-6 * std::abs(expected);
}

// The Op among the users of `value` that combines it with this constant, if
// `value` has `uses` uses.
template <typename Op>
Op userWith(Value value, double constant, int64_t uses = 1) {
  if (!llvm::hasNItems(value.getUses(), uses)) return {};
  for (Operation* user : value.getUsers())
    if (auto op = mlir::dyn_cast<Op>(user))
      for (const unsigned i : {0u, 1u})
        if (op->getOperand(i) == value &&
            isSplat(op->getOperand(1 - i), constant))
          return op;
  return {};
}

struct Found {
  Activation activation;
  Operation* last;  // its result is the activation of the value
};

// x * min(max(x / 6 + 0.5, 0), 1), or x * min(max(x + 3, 0), 6) / 6 with the
// sixth as the last factor. A sixth is a factor, not a divisor.
Operation* hardSwishOf(Value x) {
  Value inner = x;
  const bool scales_first = userWith<arith::MulFOp>(x, 1.0 / 6, 2) != nullptr;
  if (scales_first) inner = userWith<arith::MulFOp>(x, 1.0 / 6, 2);
  auto sum = userWith<arith::AddFOp>(inner, scales_first ? 0.5 : 3,
                                     scales_first ? 1 : 2);
  auto raised = sum ? userWith<arith::MaximumFOp>(sum, 0) : nullptr;
  auto gate = raised ? userWith<arith::MinimumFOp>(raised, scales_first ? 1 : 6)
                     : nullptr;
  if (!gate || !gate->hasOneUse()) return nullptr;
  auto product = mlir::dyn_cast<arith::MulFOp>(*gate->user_begin());
  if (!product || (product.getLhs() != x && product.getRhs() != x))
    return nullptr;
  if (scales_first) return product;
  return userWith<arith::MulFOp>(product, 1.0 / 6);
}

// The activation that is the only use of `x`.
std::optional<Found> activationOf(Value x) {
  if (auto relu = userWith<arith::MaximumFOp>(x, 0)) {
    if (auto relu6 = userWith<arith::MinimumFOp>(relu, 6))
      return Found{Activation::kRelu6, relu6};
    return Found{Activation::kRelu, relu};
  }
  if (Operation* last = hardSwishOf(x))
    return Found{Activation::kHardSwish, last};
  return std::nullopt;
}

// True if the value is likely to be in memory: arguments, results of library
// calls, and what several operations read, though a fusion may compute that
// once for each of them.
bool isInMemory(Value value) {
  Operation* producer = value.getDefiningOp();
  if (!producer) return true;
  if (producer->hasTrait<mlir::OpTrait::ConstantLike>() ||
      mlir::isa<nn::BroadcastOp, nn::IotaOp>(producer))
    return false;
  return mlir::isa<exec::ExecDialect, mlir::func::FuncDialect>(
             producer->getDialect()) ||
         !value.hasOneUse();
}

// From other memory than the result's, oneDNN 2.6 adds a residual in another
// implementation, which copies the input first. On AVX-512 it loses more than a
// kernel takes to add the residual with windows of several pixels, with images
// of 7 x 7 pixels (512 to 2048 channels: 0.64 ms became 1.10 ms), and with more
// input than output (1536 to 384 channels, 14 x 14: 1.49 ms became 2.13 ms).
constexpr int64_t kLeastPixels = 196;
bool addsFastFromAfar(exec::ConvOp conv) {
  const RankedTensorType type = conv.getResult().getType(),
                         weight = conv.getWeight().getType();
  int64_t pixels = 1;
  for (const int64_t size : type.getShape().drop_front().drop_back())
    pixels *= size;
  const auto is_one = [](int64_t size) { return size == 1; };
  return conv.getChannelsLast() && conv.getGroups() == 1 &&
         pixels >= kLeastPixels &&
         weight.getDimSize(1) <= weight.getDimSize(0) &&
         llvm::all_of(conv.getStrides(), is_one) &&
         llvm::all_of(weight.getShape().drop_front(2), is_one);
}

// True if the memory plan will let the sum of `conv` and `value` take the
// place of `value`: nothing reads `value` after `sum`, neither here nor in the
// callers of a layer, and neither the program nor a layer with several results
// returns it.
class LastUses {
 public:
  explicit LastUses(mlir::ModuleOp module) {
    module.walk([&](CallOp call) { calls_[call.getCallee()].push_back(call); });
  }

  bool isLast(Value value, Operation* sum) const {
    if (value.getParentBlock() != sum->getBlock() ||
        sum->getNumResults() != 1 || isReturned(sum->getResult(0)))
      return false;
    for (Operation* user : value.getUsers())
      if (user != sum &&
          (mlir::isa<nn::ReshapeOp>(user) ||
           user->getBlock() != sum->getBlock() || !user->isBeforeInBlock(sum)))
        return false;
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
    if (!argument) return !value.getDefiningOp<nn::ReshapeOp>();
    auto function = mlir::dyn_cast<FuncOp>(argument.getOwner()->getParentOp());
    if (!function || !function.isPrivate()) return false;
    const auto calls = calls_.find(function.getName());
    return calls != calls_.end() &&
           llvm::all_of(calls->second, [&](CallOp call) {
             const Value operand = call.getOperand(argument.getArgNumber());
             return llvm::count(call.getOperands(), operand) == 1 &&
                    isLast(operand, call);
           });
  }

 private:
  // True if the program returns the value or its activation.
  static bool isReturned(Value value) {
    if (const auto found = activationOf(value))
      value = found->last->getResult(0);
    return llvm::any_of(value.getUsers(), [](Operation* user) {
      return mlir::isa<mlir::func::ReturnOp>(user) &&
             !user->getParentOfType<FuncOp>().isPrivate();
    });
  }

  llvm::DenseMap<llvm::StringRef, llvm::SmallVector<CallOp>> calls_;
};

// With the residual in the result's memory, the implementation stays, and the
// sum takes less than a tenth of the convolution's time.
bool addsFastInPlace(exec::ConvOp conv) {
  return conv.getChannelsLast() && conv.getGroups() == 1;
}

class FuseActivations : public impl::FuseActivationsPassBase<FuseActivations> {
 public:
  void runOnOperation() override {
    const LastUses last_uses(getOperation());
    llvm::SmallVector<exec::ConvOp> convolutions;
    getOperation().walk([&](exec::ConvOp op) {
      if (op.getDirection() == exec::ConvDirection::kForward &&
          op.getResult().getType().getElementType().isF32())
        convolutions.push_back(op);
    });
    for (exec::ConvOp conv : convolutions) {
      if (conv.getActivation() != Activation::kNone) continue;
      addResidual(conv, last_uses);
      if (const auto found = activationOf(conv.getResult())) {
        conv.setActivation(found->activation);
        conv.setActivatesSum(conv.getResidual() != nullptr);
        replace(conv, found->last);
        ++activations;
      }
    }
  }

 private:
  void addResidual(exec::ConvOp conv, const LastUses& last_uses) {
    // Convolutions of integers lose their fast implementations, too.
    if (conv.getResidual() || conv.getScale() || !conv->hasOneUse()) return;
    auto sum = mlir::dyn_cast<arith::AddFOp>(*conv->user_begin());
    if (!sum) return;
    const Value other =
        sum.getLhs() == conv.getResult() ? sum.getRhs() : sum.getLhs();
    if (other == conv.getResult() || !isInMemory(other)) return;
    const bool in_place = addsFastInPlace(conv) && other != conv.getInput() &&
                          last_uses.isLast(other, sum);
    if (!in_place && !addsFastFromAfar(conv)) return;
    conv.getResidualMutable().assign(other);
    replace(conv, sum);
    ++residuals;
  }

  // The convolution takes the place of `last`, whose operands it may have.
  static void replace(exec::ConvOp conv, Operation* last) {
    conv->moveBefore(last);
    last->getResult(0).replaceAllUsesWith(conv.getResult());
    eraseUnused(last);
  }

  // Operations between the convolution and `last` have no other uses.
  static void eraseUnused(Operation* op) {
    llvm::SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (const Value operand : operands)
      if (Operation* producer = operand.getDefiningOp();
          producer && producer->use_empty() &&
          mlir::isa<arith::ArithDialect>(producer->getDialect()))
        eraseUnused(producer);
  }
};

}  // namespace
}  // namespace partita::kernels
