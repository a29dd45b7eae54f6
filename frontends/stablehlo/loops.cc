// Loops whose number of iterations depends on data. The body becomes a
// function that computes the next values and whether there is another
// iteration. Values from outside become arguments of it.
#include "frontends/stablehlo/graph_importer.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/ScopeExit.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::stablehlo {
namespace {

using mlir::func::FuncOp;

mlir::Value copyConstant(mlir::arith::ConstantOp constant, mlir::Block& block) {
  return mlir::OpBuilder::atBlockBegin(&block).clone(*constant)->getResult(0);
}

// Gives the block its own copies of constants from outside, and an argument for
// each other value from outside. Returns those values.
llvm::SmallVector<mlir::Value> capture(mlir::Block& block) {
  llvm::MapVector<mlir::Value, mlir::Value> inside;
  const size_t first = block.getNumArguments();
  llvm::SmallVector<mlir::Operation*> operations;
  for (mlir::Operation& op : block) operations.push_back(&op);
  for (mlir::Operation* op : operations)
    for (mlir::OpOperand& operand : op->getOpOperands()) {
      mlir::Value value = operand.get();
      if (value.getParentBlock() == &block) continue;
      mlir::Value& own = inside[value];
      if (!own) {
        auto constant = value.getDefiningOp<mlir::arith::ConstantOp>();
        if (constant)
          own = copyConstant(constant, block);
        else
          own = block.addArgument(value.getType(), value.getLoc());
      }
      operand.set(own);
    }
  llvm::SmallVector<mlir::Value> outside(block.getNumArguments() - first);
  for (const auto& [value, own] : inside)
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(own))
      outside[argument.getArgNumber() - first] = value;
  return outside;
}

}  // namespace

// Values that the body returns as it got them are not carried: all iterations
// read the first one.
FailureOr<Values> GraphImporter::loop(mlir::Region& condition,
                                      mlir::Region& body, Val goes_on,
                                      llvm::ArrayRef<Val> first) {
  const mlir::Location loc = emitter_.loc();
  mlir::OpBuilder& builder = emitter_.builder();
  // A loop in a branch that is not taken may have no end.
  if (taken_) goes_on = emitter_.bitAnd(taken_, goes_on);
  auto module = main_->getParentOfType<mlir::ModuleOp>();
  auto at_end = mlir::OpBuilder::atBlockEnd(module.getBody());
  auto function =
      FuncOp::create(at_end, loc, "loop_" + std::to_string(loops_++),
                     builder.getFunctionType({}, {}));
  function.setPrivate();
  mlir::Block& block = *function.addEntryBlock();
  block.addArgument(goes_on.value.getType(), loc);
  Values arguments;
  for (const Val& value : first)
    arguments.push_back(
        {block.addArgument(value.type(), loc), value.is_unsigned});

  Values next, again;
  {
    mlir::OpBuilder::InsertionGuard guard(builder);
    Val taken;
    std::swap(taken, taken_);
    llvm::scope_exit restore([&] { std::swap(taken, taken_); });
    builder.setInsertionPointToEnd(&block);
    auto results = importRegion(body, arguments);
    if (failed(results)) return failure();
    emitter_.start(loc);
    next = *std::move(results);
    if (next.size() != first.size()) {
      emitter_.error("expected as many results of the body as operands");
      return failure();
    }
    for (auto [before, after] : llvm::zip(first, next))
      if (before.shape() != after.shape() ||
          !(before.elementType() == after.elementType())) {
        emitter_.error("expected results of the body with the operands' types");
        return failure();
      }
    results = importRegion(condition, next);
    if (failed(results)) return failure();
    emitter_.start(loc);
    again = *std::move(results);
    if (again.size() != 1 || again[0].type() != goes_on.type()) {
      emitter_.error("expected a scalar of booleans from the condition");
      return failure();
    }
    llvm::SmallVector<mlir::Value> all = {again[0].value};
    for (const Val& value : next) all.push_back(value.value);
    mlir::func::ReturnOp::create(builder, loc, all);
  }

  // The flag, then the carried values, then the others.
  mlir::Operation* end = block.getTerminator();
  llvm::SmallVector<mlir::Value> operands = {goes_on.value}, others;
  llvm::SmallVector<int> result_of(first.size(), -1);
  for (size_t i = 0, at = 1; i < first.size(); ++i) {
    if (next[i].value != arguments[i].value) {
      result_of[i] = static_cast<int>(at++);
      operands.push_back(first[i].value);
      continue;
    }
    auto constant = first[i].value.getDefiningOp<mlir::arith::ConstantOp>();
    mlir::Value same;
    if (constant) {
      same = copyConstant(constant, block);
    } else {
      same = block.addArgument(first[i].value.getType(), loc);
      others.push_back(first[i].value);
    }
    arguments[i].value.replaceAllUsesWith(same);
    block.eraseArgument(static_cast<unsigned>(at));
  }
  operands.append(others);
  llvm::SmallVector<mlir::Value> returned = {end->getOperand(0)};
  for (size_t i = 0; i < first.size(); ++i)
    if (result_of[i] >= 0) returned.push_back(end->getOperand(i + 1));
  end->setOperands(returned);
  operands.append(capture(block));
  const llvm::SmallVector<mlir::Type> types(end->getOperandTypes());
  function.setFunctionType(
      builder.getFunctionType(block.getArgumentTypes(), types));
  auto made =
      nn::LoopOp::create(builder, loc, types, function.getName(), operands);
  Values results;
  for (size_t i = 0; i < first.size(); ++i)
    results.push_back(result_of[i] < 0 ? first[i]
                                       : Val{made.getResult(result_of[i]),
                                             first[i].is_unsigned});
  return results;
}

}  // namespace partita::stablehlo
