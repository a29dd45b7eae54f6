// Walks each function once, in order, and rebuilds it on local shapes.
#include "compiler/partition/partition.h"

#include <map>

#include "compiler/core/conflict.h"
#include "compiler/core/expert_exchange.h"
#include "compiler/core/reshard.h"
#include "compiler/partition/local_form.h"
#include "compiler/partition/passes.h"
#include "compiler/partition/reshard_builder.h"
#include "compiler/sharding/convert.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/problem.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/signature.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

namespace partita::partition {
namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;
using mlir::func::ReturnOp;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

// Returns how partial results combine; all reduced factors of an operation
// agree.
core::Reduction reductionOf(const core::ShardingRule& rule,
                            const core::OpSharding& sharding) {
  for (size_t i = 0; i < rule.factors.size(); ++i)
    if (core::IsReduced(rule.factors[i].kind) &&
        !sharding.factors[i].axes.empty())
      return rule.factors[i].reduction;
  return core::Reduction::kSum;
}

class Partitioner {
 public:
  Partitioner(mlir::ModuleOp module, sharding::Problem problem,
              std::vector<core::Sharding> shardings)
      : module_(module),
        problem_(std::move(problem)),
        shardings_(std::move(shardings)),
        resharder_(problem_.graph.mesh) {}

  LogicalResult run() {
    // Keep the old bodies until all functions are rebuilt: calls look up the
    // shardings of arguments and results there.
    for (FuncOp function : module_.getOps<FuncOp>()) {
      bodies_[function] = &function.front();
      functions_[function.getName()] = function;
    }
    module_.walk([&](nn::LoopOp loop) {
      loop_bodies_.insert(functions_.lookup(loop.getBody()));
    });
    LogicalResult result = success();
    for (FuncOp function : module_.getOps<FuncOp>())
      if (mlir::succeeded(result)) result = rebuild(function);
    for (auto& [function, body] : bodies_) {
      body->dropAllDefinedValueUses();
      body->erase();
    }
    module_->removeAttr(sharding::kEntriesAttr);
    return result;
  }

 private:
  const core::Sharding& shardingOf(Value global) const {
    return shardings_[problem_.ids.lookup(global)];
  }
  RankedTensorType localTypeOf(Value global) const {
    return localType(typeOf(global), shardingOf(global));
  }

  // Builds an explanation. Called only if a collective needs one.
  using Explanation = llvm::function_ref<std::string()>;

  LogicalResult rebuild(FuncOp function) {
    locals_.clear();
    resharded_.clear();
    mlir::Block* old = bodies_.lookup(function);
    auto* fresh = new mlir::Block;
    function.getBody().push_back(fresh);
    nn::Signature signature(function);
    by_name_ = nn::argumentsByName(function);
    SmallVector<mlir::Type> arguments, results;
    for (auto [i, argument] : llvm::enumerate(old->getArguments())) {
      arguments.push_back(localTypeOf(argument));
      locals_[argument] =
          fresh->addArgument(arguments.back(), argument.getLoc());
      describe(function, i, argument, signature);
    }
    mlir::OpBuilder builder(module_.getContext());
    builder.setInsertionPointToStart(fresh);
    for (Operation& op : old->without_terminator())
      if (mlir::failed(rebuild(&op, builder))) return failure();
    auto end = llvm::cast<ReturnOp>(old->getTerminator());
    SmallVector<Value> returned;
    for (auto [i, value] : llvm::enumerate(end.getOperands())) {
      const core::Sharding& wanted = returnedAs(function, i, value);
      returned.push_back(resharded(value, wanted, builder, end.getLoc(), [&] {
        if (loop_bodies_.contains(function))
          return "the next iteration reads the value divided as the first "
                 "one did";
        return function.getResultAttr(i, nn::kUpdatesAttr)
                   ? "the next step reads the updated value divided as the old "
                     "one"
                   : "it takes the place of the old value";
      }));
      results.push_back(returned.back().getType());
      if (!function.isPrivate()) {
        signature.setResult(
            i, dist::kShardingAttr,
            sharding::toAttr(module_.getContext(), wanted, mesh()));
        signature.setResult(i, dist::kGlobalTypeAttr,
                            mlir::TypeAttr::get(value.getType()));
      }
    }
    ReturnOp::create(builder, end.getLoc(), returned);
    function.setFunctionType(
        mlir::FunctionType::get(module_.getContext(), arguments, results));
    return success();
  }

  // New values of parameters, and of what a loop carries, have the sharding of
  // the old ones.
  const core::Sharding& returnedAs(FuncOp function, unsigned i, Value value) {
    if (loop_bodies_.contains(function))
      return shardingOf(bodies_.lookup(function)->getArgument(i));
    auto updated =
        function.getResultAttrOfType<mlir::StringAttr>(i, nn::kUpdatesAttr);
    const auto found =
        updated ? by_name_.find(updated.getValue()) : by_name_.end();
    return shardingOf(
        found == by_name_.end()
            ? value
            : bodies_.lookup(function)->getArgument(found->second));
  }

  // Callers of private functions know the sharding; the runtime needs it for
  // @main.
  void describe(FuncOp function, unsigned i, Value argument,
                nn::Signature& signature) {
    if (function.isPrivate()) {
      signature.setArgument(i, dist::kShardingAttr, {});
      signature.setArgument(i, sharding::kDimsAttr, {});
      return;
    }
    signature.setArgument(
        i, dist::kShardingAttr,
        sharding::toAttr(module_.getContext(), shardingOf(argument), mesh()));
    signature.setArgument(i, dist::kGlobalTypeAttr,
                          mlir::TypeAttr::get(argument.getType()));
  }

  LogicalResult rebuild(Operation* op, mlir::OpBuilder& builder) {
    if (auto call = llvm::dyn_cast<CallOp>(op))
      return rebuildCall(call, builder);
    if (auto loop = llvm::dyn_cast<nn::LoopOp>(op))
      return rebuildLoop(loop, builder);
    if (llvm::isa<mlir::arith::ConstantOp>(op))
      return rebuildConstant(op, builder);
    if (llvm::isa<dist::SendOp, dist::ReceiveOp>(op)) {
      rebuildTransfer(op, builder);
      return success();
    }
    const int index = problem_.operations.lookup(op);
    const core::ShardingRule& rule = problem_.graph.ops[index].rule;
    // For explanations.
    if (rule.experts >= 0)
      core::CompareExpertExchange(problem_.graph, index, shardings_);
    const core::OpSharding decided =
        core::Resolve(problem_.graph, index, shardings_);
    LocalForm form{
        builder, mesh(), rule, decided, op, {}, problem_.graph.ops[index].rows};
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      form.operands.push_back(
          reshardedOperand(op, static_cast<int>(i), decided, builder));
    FailureOr<SmallVector<Value>> results = failure();
    if (llvm::isa<dist::ConstraintOp, dist::BarrierOp, dist::GroupOp,
                  dist::ReshardOp>(op))
      results = form.operands;
    else
      results = buildLocal(form);
    if (mlir::failed(results)) return failure();
    mark(op, *results, decided, reductionOf(rule, decided));
    for (auto [i, pair] :
         llvm::enumerate(llvm::zip_equal(op->getResults(), *results))) {
      auto [global, local] = pair;
      const int tensor = static_cast<int>(op->getNumOperands() + i);
      define(global, local, decided.results[i], reductionOf(rule, decided),
             builder, [&, value = global] {
               return conflictsOf(op, tensor, value, decided);
             });
    }
    return success();
  }

  // A transferred value has the sharding of its definition on both sides.
  void rebuildTransfer(Operation* op, mlir::OpBuilder& builder) {
    Operation* local = builder.clone(*op);
    if (op->getNumOperands() == 1) {
      local->setOperand(0, locals_.lookup(op->getOperand(0)));
      return;
    }
    Value global = op->getResult(0);
    local->getResult(0).setType(localTypeOf(global));
    local->removeAttr(dist::kShardingsAttr);
    locals_[global] = local->getResult(0);
  }

  // A splat becomes a splat of the local shape; other constants are sliced.
  LogicalResult rebuildConstant(Operation* op, mlir::OpBuilder& builder) {
    Value global = op->getResult(0);
    auto value = llvm::cast<mlir::ElementsAttr>(
        llvm::cast<mlir::arith::ConstantOp>(op).getValue());
    if (value.isSplat()) {
      locals_[global] = localSplat(global, shardingOf(global), builder);
    } else {
      Operation* whole = mlir::arith::ConstantOp::create(
          builder, op->getLoc(), llvm::cast<mlir::TypedAttr>(value));
      define(global, whole->getResult(0),
             core::Replicated(typeOf(global).getRank()), core::Reduction::kSum,
             builder);
    }
    return success();
  }

  // Returns the local form of a splat constant; null for others. Zeros may also
  // be partial sums.
  Value localSplat(Value global, const core::Sharding& wanted,
                   mlir::OpBuilder& builder) {
    auto constant = global.getDefiningOp<mlir::arith::ConstantOp>();
    if (!constant) return {};
    auto value = llvm::dyn_cast<mlir::SplatElementsAttr>(constant.getValue());
    const bool is_zero = mlir::matchPattern(global, mlir::m_AnyZeroFloat());
    if (!value || (!wanted.unreduced.empty() && !is_zero)) return {};
    return mlir::arith::ConstantOp::create(
        builder, constant.getLoc(),
        mlir::DenseElementsAttr(value).resizeSplat(
            localType(typeOf(global), wanted)));
  }

  LogicalResult rebuildCall(CallOp call, mlir::OpBuilder& builder) {
    mlir::Block& body = calleeBody(functions_.lookup(call.getCallee()));
    SmallVector<Value> operands;
    for (auto [operand, argument] :
         llvm::zip_equal(call.getOperands(), body.getArguments()))
      operands.push_back(
          resharded(operand, shardingOf(argument), builder, call.getLoc(), [&] {
            return "the layer @" + call.getCallee().str() +
                   " takes this argument so wherever it is called";
          }));
    SmallVector<mlir::Type> types;
    for (Value returned : body.getTerminator()->getOperands())
      types.push_back(localTypeOf(returned));
    auto local = CallOp::create(builder, call.getLoc(), types, call.getCallee(),
                                operands);
    for (auto [i, result] : llvm::enumerate(call.getResults()))
      define(result, local.getResult(i),
             shardingOf(body.getTerminator()->getOperand(i)),
             core::Reduction::kSum, builder);
    return success();
  }

  LogicalResult rebuildLoop(nn::LoopOp loop, mlir::OpBuilder& builder) {
    mlir::Block& body = calleeBody(functions_.lookup(loop.getBody()));
    SmallVector<Value> operands;
    for (auto [operand, argument] :
         llvm::zip_equal(loop.getOperands(), body.getArguments()))
      operands.push_back(
          resharded(operand, shardingOf(argument), builder, loop.getLoc(), [&] {
            return "the loop @" + loop.getBody().str() +
                   " takes this value so in every iteration";
          }));
    SmallVector<mlir::Type> types;
    for (Value argument : body.getArguments().take_front(loop.getNumResults()))
      types.push_back(localTypeOf(argument));
    auto local = nn::LoopOp::create(builder, loop.getLoc(), types,
                                    loop.getBodyAttr(), operands);
    for (auto [i, result] : llvm::enumerate(loop.getResults()))
      define(result, local.getResult(i), shardingOf(body.getArgument(i)),
             core::Reduction::kSum, builder);
    return success();
  }

  // Records an operation's result and converts it to its annotated placement.
  // Partial results are reduced here, at their definition.
  void define(
      Value global, Value local, const core::Sharding& has,
      core::Reduction reduction, mlir::OpBuilder& builder,
      Explanation conflicts = [] { return std::string(); }) {
    const core::Sharding& wanted = shardingOf(global);
    if (!has.SamePlacement(wanted))
      local = resharder_.build(
          builder, global.getLoc(), typeOf(global), local, has, wanted,
          reduction,
          (has.unreduced.empty() ? placedAs(global) : reduced(has)) +
              conflicts());
    locals_[global] = local;
  }

  Value reshardedOperand(Operation* op, int index,
                         const core::OpSharding& decided,
                         mlir::OpBuilder& builder) {
    Value operand = op->getOperand(index);
    return resharded(operand, decided.operands[index], builder, op->getLoc(),
                     [&] {
                       return "operand of " + sharding::describeOperation(op) +
                              conflictsOf(op, index, operand, decided);
                     });
  }

  // Explains why an operation does not use this tensor (operands first) as
  // annotated.
  std::string conflictsOf(Operation* op, int tensor, Value value,
                          const core::OpSharding& decided) {
    std::string words;
    for (const core::Conflict& conflict : decided.conflicts)
      if (core::Concerns(problem_.graph, conflict, tensor, shardingOf(value))) {
        sharding::nameTensors(op, problem_);
        words += "; " + core::Describe(problem_.graph, conflict);
      }
    return words;
  }

  // Equal reshards of a value are shared.
  Value resharded(Value global, const core::Sharding& wanted,
                  mlir::OpBuilder& builder, mlir::Location loc,
                  Explanation why) {
    const core::Sharding& has = shardingOf(global);
    Value local = locals_.lookup(global);
    if (has.SamePlacement(wanted)) return local;
    if (Value splat = localSplat(global, wanted, builder)) return splat;
    auto [entry, is_new] = resharded_.try_emplace(
        {problem_.ids.lookup(global), core::ToString(mesh(), wanted)}, Value());
    if (is_new)
      entry->second = resharder_.build(builder, loc, typeOf(global), local, has,
                                       wanted, core::Reduction::kSum, why());
    return entry->second;
  }

  std::string placedAs(Value global) const {
    return sharding::describeValue(global) + " is placed as " +
           core::ToString(mesh(), shardingOf(global));
  }
  std::string reduced(const core::Sharding& has) const {
    return "each device along " + core::ToString(mesh(), has.unreduced) +
           " has a partial result";
  }

  // Marks the operation so that it can be identified later.
  void mark(Operation* op, mlir::ValueRange locals,
            const core::OpSharding& decided, core::Reduction reduction) {
    mlir::Attribute number = op->getAttr(kOriginAttr);
    Operation* made = locals.empty() ? nullptr : locals[0].getDefiningOp();
    if (!number || !made) return;
    SmallVector<mlir::Attribute> placements;
    for (const core::Sharding& sharding : decided.results)
      placements.push_back(
          sharding::toAttr(module_.getContext(), sharding, mesh()));
    made->setAttr(kOriginAttr, number);
    made->setAttr(kOriginReductionAttr, mlir::Builder(op).getI64IntegerAttr(
                                            static_cast<int64_t>(reduction)));
    made->setAttr(kOriginShardingsAttr,
                  mlir::ArrayAttr::get(module_.getContext(), placements));
  }

  mlir::Block& calleeBody(FuncOp callee) { return *bodies_.lookup(callee); }
  const core::Mesh& mesh() const { return problem_.graph.mesh; }

  mlir::ModuleOp module_;
  sharding::Problem problem_;
  std::vector<core::Sharding> shardings_;
  Resharder resharder_;
  llvm::DenseMap<Value, Value> locals_;
  std::map<std::pair<int, std::string>, Value> resharded_;
  llvm::DenseMap<Operation*, mlir::Block*> bodies_;
  llvm::StringMap<FuncOp> functions_;
  llvm::DenseSet<Operation*> loop_bodies_;
  llvm::StringMap<unsigned> by_name_;  // arguments of the current function
};

}  // namespace

#define GEN_PASS_DEF_PARTITIONPASS
#include "compiler/partition/passes.h.inc"

namespace {
struct PartitionPass : impl::PartitionPassBase<PartitionPass> {
  PartitionPass() = default;
  explicit PartitionPass(std::shared_ptr<sharding::Decided> decided)
      : decided_(std::move(decided)) {}

  void runOnOperation() override {
    if (mlir::failed(decided_ ? Partitioner(getOperation(),
                                            std::move(decided_->problem),
                                            std::move(decided_->shardings))
                                    .run()
                              : partitionModule(getOperation())))
      signalPassFailure();
  }

 private:
  std::shared_ptr<sharding::Decided> decided_;
};
}  // namespace

LogicalResult partitionModule(mlir::ModuleOp module) {
  FailureOr<core::Mesh> mesh = sharding::meshOf(module);
  if (mlir::failed(mesh)) return failure();
  FailureOr<sharding::Problem> problem = sharding::buildProblem(module, *mesh);
  if (mlir::failed(problem)) return failure();
  auto shardings = sharding::readShardings(*problem);
  if (mlir::failed(shardings)) return failure();
  return Partitioner(module, std::move(*problem), std::move(*shardings)).run();
}

std::unique_ptr<mlir::Pass> createPartitionPass(
    std::shared_ptr<sharding::Decided> decided) {
  return std::make_unique<PartitionPass>(std::move(decided));
}

}  // namespace partita::partition
