// Builds the graph: one value per tensor, one operation per rule, and ties for
// calls.
#include "compiler/sharding/problem.h"

#include <map>
#include <memory>
#include <utility>

#include "compiler/core/long_attention.h"
#include "compiler/sharding/convert.h"
#include "compiler/sharding/dims.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/sharding_rule.h"
#include "dialects/nn/signature.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

namespace partita::sharding {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;
using mlir::func::ReturnOp;

// A rule between two tensors of one shape that carries every dimension.
core::ShardingRule identityRule(llvm::ArrayRef<int64_t> shape) {
  core::ShardingRule rule;
  core::TensorFactors dims;
  for (auto [i, size] : llvm::enumerate(shape)) {
    rule.factors.push_back({size, core::FactorKind::kCarried});
    dims.push_back({static_cast<int>(i)});
  }
  rule.operands = {dims};
  rule.results = {dims};
  return rule;
}

// A rule for an operation whose tensors must not be divided.
core::ShardingRule wholeRule(Operation* op) {
  core::ShardingRule rule;
  auto add = [&](Value value, std::vector<core::TensorFactors>& tensors) {
    core::TensorFactors dims;
    for (int64_t size :
         llvm::cast<mlir::RankedTensorType>(value.getType()).getShape()) {
      dims.push_back({static_cast<int>(rule.factors.size())});
      rule.factors.push_back({size, core::FactorKind::kWhole});
    }
    tensors.push_back(dims);
  };
  for (Value operand : op->getOperands()) add(operand, rule.operands);
  for (Value result : op->getResults()) add(result, rule.results);
  return rule;
}

// A rule without demands: its tensors have no factor in common.
core::ShardingRule looseRule(Operation* op) {
  core::ShardingRule rule = wholeRule(op);
  for (core::Factor& factor : rule.factors)
    factor.kind = core::FactorKind::kCarried;
  return rule;
}

// True for elementwise operations and data movement.
bool carriesAll(const core::ShardingRule& rule) {
  return llvm::all_of(rule.factors, [](const core::Factor& factor) {
    return factor.kind == core::FactorKind::kCarried;
  });
}

class Builder {
 public:
  Builder(mlir::ModuleOp module, const core::Mesh& mesh, Problem before)
      : module_(module), before_(std::move(before)) {
    problem_.graph.mesh = mesh;
    auto entries = module->getAttrOfType<mlir::ArrayAttr>(kEntriesAttr);
    if (!entries) return;
    for (auto entry : entries.getAsRange<mlir::StringAttr>())
      problem_.graph.entries.push_back(entry.str());
    // The first priority after the entries'.
    problem_.graph.storage_priority = static_cast<int>(entries.size()) + 1;
  }

  FailureOr<Problem> run() {
    for (FuncOp function : module_.getOps<FuncOp>()) {
      functions_[function.getName()] = function;
      if (mlir::failed(addFunction(function))) return failure();
    }
    for (FuncOp function : module_.getOps<FuncOp>()) {
      function.walk([&](CallOp call) { tieCall(call); });
      function.walk([&](nn::LoopOp loop) { tieLoop(loop); });
    }
    if (auto main = module_.lookupSymbol<FuncOp>("main")) tieUpdates(main);
    for (auto& [id, members] : groups_)
      problem_.graph.groups.push_back(std::move(members));
    return std::move(problem_);
  }

 private:
  LogicalResult addValue(Value value) {
    const int id = static_cast<int>(problem_.values.size());
    if (auto known = before_.ids.find(value); known != before_.ids.end()) {
      core::Value& plain = before_.graph.values[known->second];
      plain.barred.clear();
      problem_.graph.values.push_back(std::move(plain));
      problem_.dims.push_back(std::move(before_.dims[known->second]));
    } else if (mlir::failed(addNewValue(value))) {
      return failure();
    }
    problem_.ids[value] = id;
    problem_.values.push_back(value);
    return success();
  }

  LogicalResult addNewValue(Value value) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
    if (!type || !type.hasStaticShape())
      return mlir::emitError(value.getLoc())
             << "expected a tensor of static shape to divide, found "
             << value.getType();
    core::Value plain;
    plain.shape.assign(type.getShape().begin(), type.getShape().end());
    plain.element_bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    plain.is_zero = mlir::matchPattern(value, mlir::m_AnyZeroFloat());
    problem_.graph.values.push_back(std::move(plain));
    auto dims = dimsOf(value);
    problem_.dims.push_back(
        dims ? std::make_shared<llvm::SmallVector<Dim>>(*std::move(dims))
             : nullptr);
    return success();
  }

  LogicalResult addFunction(FuncOp function) {
    for (Value argument : function.getArguments())
      if (mlir::failed(addValue(argument))) return failure();
    for (Operation& op : function.front().without_terminator()) {
      for (Value result : op.getResults())
        if (mlir::failed(addValue(result))) return failure();
      if (!llvm::isa<CallOp>(op)) addOperation(&op);
    }
    return success();
  }

  void addOperation(Operation* op) {
    core::Op plain;
    auto known = before_.operations.find(op);
    // A ring changes the rule.
    if (known != before_.operations.end() &&
        before_.graph.ops[known->second].attention !=
            core::LongAttention::kRing)
      plain = std::move(before_.graph.ops[known->second]);
    else
      plain = newOperation(op);
    if (plain.rule.attention) readLongAttention(op, plain);
    if (plain.rule.experts >= 0) readRowExchange(op, plain);
    if (auto group = llvm::dyn_cast<dist::GroupOp>(op))
      groups_[group.getId()].push_back(problem_.ids.lookup(group.getResult()));
    plain.barred.clear();
    if (auto barred = op->getAttrOfType<mlir::DenseI64ArrayAttr>(kBarredAttr))
      plain.barred.assign(barred.asArrayRef().begin(),
                          barred.asArrayRef().end());
    plain.operands.clear();
    for (Value operand : op->getOperands())
      plain.operands.push_back(problem_.ids.lookup(operand));
    plain.results.clear();
    for (Value result : op->getResults())
      plain.results.push_back(problem_.ids.lookup(result));
    problem_.operations[op] = static_cast<int>(problem_.graph.ops.size());
    problem_.graph.ops.push_back(std::move(plain));
  }

  static void readLongAttention(Operation* op, core::Op& plain) {
    auto way = op->getAttrOfType<mlir::IntegerAttr>(kLongAttentionAttr);
    plain.attention = way ? static_cast<core::LongAttention>(way.getInt())
                          : core::LongAttention::kGather;
    if (plain.attention == core::LongAttention::kRing)
      plain.rule = core::AsRing(plain.rule);
  }

  static void readRowExchange(Operation* op, core::Op& plain) {
    plain.rows = core::RowExchange();
    auto bound = op->getAttrOfType<mlir::FloatAttr>(kRowExchangeAttr);
    if (!bound) return;
    plain.rows.way = core::ExpertExchange::kRows;
    plain.rows.bound = bound.getValueAsDouble();
  }

  // The operation without its operands and results.
  static core::Op newOperation(Operation* op) {
    core::Op plain;
    if (llvm::isa<dist::ConstraintOp, dist::BarrierOp, dist::GroupOp,
                  dist::ReshardOp>(op)) {
      plain.rule = identityRule(
          llvm::cast<mlir::RankedTensorType>(op->getResult(0).getType())
              .getShape());
      if (auto barrier = llvm::dyn_cast<dist::BarrierOp>(op))
        plain.direction = directionOf(barrier);
    } else if (llvm::isa<nn::LoopOp>(op)) {
      plain.rule = looseRule(op);  // tieLoop relates its tensors
    } else if (auto rule = nn::shardingRuleOf(op)) {
      plain.rule = *rule;
    } else {
      plain.rule = wholeRule(op);
    }
    if (op->hasAttr(kSharesAttr)) {
      plain.rule.linear = {0};
      plain.takes_shares = true;
    }
    plain.round = carriesAll(plain.rule) ? 0 : 1;
    return plain;
  }

  core::Op& tie(Value from, Value to) {
    core::Op plain;
    plain.rule = identityRule(
        llvm::cast<mlir::RankedTensorType>(from.getType()).getShape());
    plain.round = 0;
    plain.operands = {problem_.ids.lookup(from)};
    plain.results = {problem_.ids.lookup(to)};
    return problem_.graph.ops.emplace_back(std::move(plain));
  }

  void tieCall(CallOp call) {
    FuncOp callee = functions_.lookup(call.getCallee());
    for (auto [operand, argument] :
         llvm::zip_equal(call.getOperands(), callee.getArguments()))
      tie(operand, argument);
    Operation* end = callee.front().getTerminator();
    for (auto [returned, result] :
         llvm::zip_equal(end->getOperands(), call.getResults())) {
      core::Op& passed = tie(returned, result);
      passed.is_tie = true;
      passed.rule.linear = {0};
    }
  }

  // A carried value is divided alike before, within and after the loop: as the
  // body's argument.
  void tieLoop(nn::LoopOp loop) {
    mlir::Block& body = functions_.lookup(loop.getBody()).front();
    for (auto [operand, argument] :
         llvm::zip_equal(loop.getOperands(), body.getArguments()))
      tie(operand, argument);
    for (auto [returned, argument] :
         llvm::zip(body.getTerminator()->getOperands(), body.getArguments()))
      tie(returned, argument);
    for (auto [argument, result] :
         llvm::zip(body.getArguments(), loop.getResults()))
      tie(argument, result);
  }

  // Ties each updated value to the argument that it replaces.
  void tieUpdates(FuncOp main) {
    llvm::StringMap<Value> arguments;
    for (mlir::BlockArgument argument : main.getArguments())
      if (auto name = main.getArgAttrOfType<mlir::StringAttr>(
              argument.getArgNumber(), nn::kNameAttr))
        arguments[name.getValue()] = argument;
    for (auto [i, value] :
         llvm::enumerate(main.front().getTerminator()->getOperands()))
      if (auto name =
              main.getResultAttrOfType<mlir::StringAttr>(i, nn::kUpdatesAttr))
        tie(value, arguments.lookup(name.getValue()));
  }

  mlir::ModuleOp module_;
  Problem before_, problem_;
  llvm::StringMap<FuncOp> functions_;
  llvm::MapVector<int64_t, std::vector<int>> groups_;
};

}  // namespace

FailureOr<Problem> buildProblem(mlir::ModuleOp module, const core::Mesh& mesh,
                                Problem before) {
  return Builder(module, mesh, std::move(before)).run();
}

void nameTensors(Operation* op, Problem& problem) {
  const auto name = [&](Value value) -> const std::string& {
    const int id = problem.ids.lookup(value);
    core::Value& plain = problem.graph.values[id];
    if (!plain.name.empty()) return plain.name;
    plain.name = describeValue(value);
    if (problem.dims[id])
      for (const Dim& dim : *problem.dims[id]) plain.dims.push_back(print(dim));
    return plain.name;
  };
  for (Value operand : op->getOperands()) name(operand);
  for (Value result : op->getResults()) name(result);
  problem.graph.ops[problem.operations.lookup(op)].name =
      op->getNumResults() > 0 ? name(op->getResult(0)) : describeOperation(op);
}

FailureOr<std::vector<core::Sharding>> readShardings(const Problem& problem) {
  std::vector<core::Sharding> shardings;
  for (Value value : problem.values) {
    dist::ShardingAttr attr = shardingOf(value);
    if (!attr) {
      shardings.push_back(core::Replicated(
          llvm::cast<mlir::RankedTensorType>(value.getType()).getRank()));
      continue;
    }
    auto sharding = toCore(attr, problem.graph.mesh);
    if (mlir::failed(sharding))
      return mlir::emitError(value.getLoc())
             << "expected a sharding on the axes of the mesh, found " << attr;
    shardings.push_back(std::move(*sharding));
  }
  return shardings;
}

void writeShardings(const Problem& problem,
                    const std::vector<core::Sharding>& shardings) {
  std::map<mlir::Operation*, nn::Signature> signatures;
  for (auto [value, sharding] : llvm::zip_equal(problem.values, shardings)) {
    const auto attr = toAttr(value.getContext(), sharding, problem.graph.mesh);
    auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
    if (!argument) {
      setSharding(value, attr);
      continue;
    }
    Operation* function = argument.getOwner()->getParentOp();
    signatures.try_emplace(function, llvm::cast<FuncOp>(function))
        .first->second.setArgument(argument.getArgNumber(), dist::kShardingAttr,
                                   attr);
  }
}

void writeChoices(const Problem& problem) {
  for (auto [op, index] : problem.operations) {
    const core::LongAttention way = problem.graph.ops[index].attention;
    if (way == core::LongAttention::kGather)
      op->removeAttr(kLongAttentionAttr);
    else
      op->setAttr(kLongAttentionAttr,
                  mlir::Builder(op).getI64IntegerAttr(static_cast<int>(way)));
    const core::RowExchange& rows = problem.graph.ops[index].rows;
    if (rows.way == core::ExpertExchange::kGather)
      op->removeAttr(kRowExchangeAttr);
    else
      op->setAttr(kRowExchangeAttr,
                  mlir::Builder(op).getF64FloatAttr(rows.bound));
    const std::vector<int>& barred = problem.graph.ops[index].barred;
    if (barred.empty())
      op->removeAttr(kBarredAttr);
    else
      op->setAttr(kBarredAttr,
                  mlir::DenseI64ArrayAttr::get(
                      op->getContext(), llvm::SmallVector<int64_t>(
                                            barred.begin(), barred.end())));
  }
}

std::string describeValue(Value value) {
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
    auto function = llvm::cast<FuncOp>(argument.getOwner()->getParentOp());
    if (auto name = function.getArgAttrOfType<mlir::StringAttr>(
            argument.getArgNumber(), nn::kNameAttr))
      return name.str();
    return "argument " + std::to_string(argument.getArgNumber()) + " of @" +
           function.getName().str();
  }
  return describeOperation(value.getDefiningOp());
}

std::string describeOperation(Operation* op) {
  std::string text = op->getName().getStringRef().str();
  std::string where;
  llvm::raw_string_ostream stream(where);
  auto name = op->getLoc()->findInstanceOf<mlir::NameLoc>();
  auto line = op->getLoc()->findInstanceOf<mlir::FileLineColLoc>();
  if (name) stream << name.getName().getValue();
  if (name && line) stream << " at ";
  if (line) stream << line.getFilename().getValue() << ":" << line.getLine();
  return where.empty() ? text : text + " '" + where + "'";
}

}  // namespace partita::sharding
