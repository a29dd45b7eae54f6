// Builds a function and its gradient in one body first, and then splits it in
// two. A value that the second half needs from the first is an argument, is
// saved, or is recomputed just before its use.
#include "compiler/autodiff/function_gradients.h"

#include "compiler/autodiff/call_marks.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/product_epilogue.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

namespace partita::autodiff {
namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::FailureOr;
using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// True if the operation widens numbers of 8 or 4 bits, or moves such numbers:
// frozen weights, which are kept as integers.
bool readsIntegers(Operation* op) {
  while (llvm::isa_and_nonnull<nn::TransposeOp, nn::ReshapeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  if (!llvm::isa_and_nonnull<mlir::arith::SIToFPOp, mlir::arith::ExtFOp,
                             nn::DequantizeOp>(op))
    return false;
  const auto type =
      llvm::cast<mlir::RankedTensorType>(op->getOperand(0).getType());
  return type.getElementTypeBitWidth() == 8;
}

bool isFree(Operation* op) {
  return llvm::isa<mlir::arith::ConstantOp, nn::ReshapeOp, nn::BroadcastOp,
                   nn::IotaOp>(op) ||
         readsIntegers(op);
}

// True if the backward function recomputes the operation.
bool isRecomputed(Operation* op, Recompute recompute) {
  if (auto own = op->getAttrOfType<mlir::StringAttr>(kRecomputeAttr))
    recompute = recomputeOf(own.getValue()).value_or(recompute);
  if (recompute == Recompute::kFull || isFree(op)) return true;
  if (recompute == Recompute::kNone) return false;
  return llvm::isa<mlir::arith::ArithDialect, mlir::math::MathDialect>(
             op->getDialect()) ||
         llvm::isa<nn::SliceOp, nn::TransposeOp, nn::PadOp, nn::ConcatOp,
                   nn::LayerNormOp, nn::RmsNormOp, nn::SoftmaxOp>(op);
}

// Splits a body in two; `backward` are the operations of the second half.
class Cut {
 public:
  Cut(FuncOp joint, llvm::ArrayRef<Operation*> backward, Recompute recompute)
      : joint_(joint), backward_(backward), recompute_(recompute) {
    is_backward_.insert(backward.begin(), backward.end());
    for (nn::DotGeneralOp op : joint.front().getOps<nn::DotGeneralOp>())
      if (auto epilogue = nn::epilogueOf(op, /*residuals=*/true))
        product_of_[epilogue.last] = op;
  }

  // Inputs of the second half: arguments of the body, and values to save.
  llvm::SetVector<Value> arguments, saved;

  // Finds the inputs that the second half and `returned` need.
  void findNeeds(llvm::ArrayRef<Value> returned) {
    for (Operation* op : backward_)
      for (Value operand : op->getOperands()) need(operand);
    for (Value value : returned) need(value);
  }

  // Copies the second half to `body`; `mapping` contains its inputs.
  void copy(mlir::OpBuilder& body, mlir::IRMapping& mapping,
            llvm::ArrayRef<Value> returned) {
    for (Operation* op : backward_) {
      for (Value operand : op->getOperands()) provide(body, mapping, operand);
      body.clone(*op, mapping);
    }
    for (Value value : returned) provide(body, mapping, value);
  }

 private:
  void need(Value value) {
    Operation* producer = value.getDefiningOp();
    if (producer && is_backward_.contains(producer)) return;
    if (!needed_.insert(value).second) return;
    // A library adds bias and residual to a product. Saving the sum instead of
    // the product takes no more memory.
    Operation* policy = product_of_.lookup(producer);
    if (!policy) policy = producer;
    if (!producer)
      arguments.insert(value);
    else if (isRecomputed(policy, recompute_))
      for (Value operand : producer->getOperands()) need(operand);
    else
      saved.insert(value);
  }

  // Uses an explicit stack, since recursion could be as deep as the function is
  // long.
  void provide(mlir::OpBuilder& body, mlir::IRMapping& mapping, Value value) {
    SmallVector<Value> open = {value};
    while (!open.empty()) {
      if (mapping.contains(open.back())) {
        open.pop_back();
        continue;
      }
      Operation* producer = open.back().getDefiningOp();
      const size_t before = open.size();
      for (Value operand : producer->getOperands())
        if (!mapping.contains(operand)) open.push_back(operand);
      if (open.size() == before) body.clone(*producer, mapping);
    }
  }

  FuncOp joint_;
  llvm::ArrayRef<Operation*> backward_;
  const Recompute recompute_;
  llvm::DenseSet<Operation*> is_backward_;
  llvm::DenseMap<Operation*, Operation*> product_of_;  // by end of epilogue
  llvm::DenseSet<Value> needed_;
};

// Appends results to the function.
void appendResults(FuncOp function, mlir::ValueRange more) {
  Operation* terminator = function.front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), more);
  SmallVector<mlir::Type> results(terminator->getOperandTypes());
  function.setFunctionType(mlir::FunctionType::get(
      function.getContext(), function.getArgumentTypes(), results));
}

FuncOp makeFunction(mlir::Location loc, const std::string& name,
                    mlir::TypeRange inputs) {
  FuncOp function = FuncOp::create(
      loc, name, mlir::FunctionType::get(loc.getContext(), inputs, {}));
  function.setPrivate();
  function.addEntryBlock();
  return function;
}

}  // namespace

FailureOr<FunctionGradients::Pair> FunctionGradients::make(
    FuncOp function, llvm::ArrayRef<bool> results,
    llvm::ArrayRef<bool> wanted) {
  const mlir::Location loc = function.getLoc();
  FuncOp forward = function.clone();
  const unsigned arguments = forward.getNumArguments();
  mlir::Block& block = forward.front();
  Operation* terminator = block.getTerminator();
  llvm::DenseSet<Value> wanted_values;
  for (unsigned i = 0; i < arguments; ++i)
    if (wanted[i]) wanted_values.insert(block.getArgument(i));
  if (mlir::failed(decomposeForGradients(block, wanted_values)))
    return forward.erase(), failure();
  mlir::OpBuilder builder(terminator);
  // Marks the border: calls before it may be replaced while gradients are built
  // after it.
  Operation* border =
      mlir::arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));

  // Both halves share one body; gradients of results are extra arguments.
  ValueMap gradients;
  for (auto [value, present] :
       llvm::zip_equal(terminator->getOperands(), results)) {
    if (!present) continue;
    Value gradient = block.addArgument(value.getType(), loc);
    Value& sum = gradients[value];  // a value may be returned twice
    sum = sum ? mlir::arith::AddFOp::create(builder, loc, sum, gradient)
                    .getResult()
              : gradient;
  }
  if (mlir::failed(reverse(
          block, wanted_values, gradients,
          [&](mlir::OpBuilder& inner, CallOp call,
              llvm::ArrayRef<Value> of_results, llvm::ArrayRef<bool> operands) {
            return differentiate(inner, call, of_results, operands);
          })))
    return forward.erase(), failure();

  Pair pair;
  SmallVector<Value> returned;
  for (unsigned i = 0; i < arguments; ++i) {
    Value gradient =
        wanted[i] ? gradients.lookup(block.getArgument(i)) : Value();
    if (!gradient) continue;
    pair.given.push_back(i);
    returned.push_back(gradient);
  }
  SmallVector<Operation*> second;
  for (Operation* op = border->getNextNode(); op != terminator;
       op = op->getNextNode())
    second.push_back(op);
  border->erase();

  Cut cut(forward, second, recompute_);
  cut.findNeeds(returned);
  SmallVector<mlir::Type> inputs;
  SmallVector<Value> given_values;
  for (unsigned i = 0; i < arguments; ++i) {
    if (!cut.arguments.contains(block.getArgument(i))) continue;
    pair.kept.push_back(i);
    given_values.push_back(block.getArgument(i));
  }
  llvm::append_range(given_values, cut.saved);
  for (unsigned i = arguments; i < block.getNumArguments(); ++i)
    given_values.push_back(block.getArgument(i));
  for (Value value : given_values) inputs.push_back(value.getType());
  pair.backward =
      makeFunction(loc, (function.getName() + "_backward").str(), inputs);
  mlir::IRMapping mapping;
  mapping.map(given_values, pair.backward.getArguments());
  mlir::OpBuilder body = mlir::OpBuilder::atBlockBegin(&pair.backward.front());
  cut.copy(body, mapping, returned);
  SmallVector<Value> copied;
  for (Value value : returned) copied.push_back(mapping.lookup(value));
  mlir::func::ReturnOp::create(body, loc, copied);
  appendResults(pair.backward, {});

  for (Operation* op : llvm::reverse(second)) op->erase();
  while (block.getNumArguments() > arguments)
    block.eraseArgument(block.getNumArguments() - 1);
  forward.setName((function.getName() + "_forward").str());
  appendResults(forward, cut.saved.getArrayRef());
  pair.forward = forward;
  symbols_.insert(pair.forward);
  symbols_.insert(pair.backward);
  return pair;
}

FailureOr<const FunctionGradients::Pair*> FunctionGradients::pairOf(
    CallOp call, llvm::ArrayRef<Value> results, llvm::ArrayRef<bool> wanted) {
  auto function = symbols_.lookup<FuncOp>(call.getCallee());
  if (!function || function.isExternal())
    return call.emitOpError("expected a function with a body named '")
               << call.getCallee() << "'",
           failure();
  SmallVector<bool> present;
  for (Value result : results) present.push_back(bool(result));
  const Key key(call.getCallee().str(),
                std::vector<bool>(present.begin(), present.end()),
                std::vector<bool>(wanted.begin(), wanted.end()));
  auto found = pairs_.find(key);
  if (found == pairs_.end()) {
    FailureOr<Pair> made = make(function, present, wanted);
    if (mlir::failed(made)) return failure();
    found = pairs_.emplace(key, std::move(*made)).first;
  }
  return &found->second;
}

FailureOr<SmallVector<Value>> FunctionGradients::differentiate(
    mlir::OpBuilder& builder, CallOp call, llvm::ArrayRef<Value> results,
    llvm::ArrayRef<bool> wanted) {
  FailureOr<const Pair*> found = pairOf(call, results, wanted);
  if (mlir::failed(found)) return failure();
  const Pair& pair = **found;
  mlir::OpBuilder at_call(call);
  auto forward =
      CallOp::create(at_call, call.getLoc(), pair.forward, call.getOperands());
  forward->setDiscardableAttrs(call->getDiscardableAttrDictionary());
  SmallVector<Value> operands, given(call.getNumOperands());
  for (unsigned i : pair.kept) operands.push_back(call.getOperand(i));
  llvm::append_range(operands,
                     forward.getResults().drop_front(call.getNumResults()));
  for (Value result : results)
    if (result) operands.push_back(result);
  auto backward =
      CallOp::create(builder, call.getLoc(), pair.backward, operands);
  backward->setAttr(kBackwardAttr, builder.getUnitAttr());
  if (mlir::Attribute stage = forward->getAttr(kStageAttr))
    backward->setAttr(kStageAttr, stage);
  for (auto [i, result] : llvm::zip_equal(pair.given, backward.getResults()))
    given[i] = result;
  call.replaceAllUsesWith(
      forward.getResults().take_front(call.getNumResults()));
  call.erase();
  return given;
}

}  // namespace partita::autodiff
