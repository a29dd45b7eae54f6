// Applies each entry of the plan as a round of propagation.
#include "compiler/sharding/apply_plan.h"

#include "compiler/core/delay_reductions.h"
#include "compiler/core/expert_exchange.h"
#include "compiler/core/long_attention.h"
#include "compiler/sharding/annotations.h"
#include "compiler/sharding/compress_momenta.h"
#include "compiler/sharding/convert.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/divide_states.h"
#include "compiler/sharding/own_states.h"
#include "compiler/sharding/passes.h"
#include "compiler/sharding/problem.h"
#include "compiler/sharding/scopes.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {

#define GEN_PASS_DEF_APPLYPLANPASS
#include "compiler/sharding/passes.h.inc"

namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

// Overrides and annotations of the model have priority 0.
constexpr int kFirstEntry = 1;

class Application {
 public:
  // `before` is empty, or the problem that an earlier application left after it
  // decomposed operations.
  Application(mlir::ModuleOp module, const plan::Plan& plan, Problem before)
      : module_(module), plan_(plan), problem_(std::move(before)) {}

  // Returns the number of operations decomposed; 0 means done.
  FailureOr<int> run() {
    FailureOr<Problem> problem =
        buildProblem(module_, plan_.mesh, std::move(problem_));
    if (mlir::failed(problem)) return failure();
    problem_ = std::move(*problem);
    const int last = kFirstEntry + static_cast<int>(plan_.shard.size());
    problem_.graph.storage_priority = last;
    barOutside(module_, plan_, kFirstEntry, problem_);
    auto annotated = readAnnotations(module_, plan_, problem_);
    if (mlir::failed(annotated)) return failure();
    shardings_ = std::move(*annotated);
    core::Propagate(problem_.graph, kFirstEntry - 1, shardings_);
    if (mlir::failed(checkGroups(problem_, shardings_))) return failure();
    for (auto [i, entry] : llvm::enumerate(plan_.shard)) {
      const int priority = kFirstEntry + static_cast<int>(i);
      for (const plan::ShardedDimension& division : entry.dimensions)
        // D is the pipeline's depth, not a dimension of a tensor.
        if (division.dimension != "D")
          divide(division, priority, plan::IsScoped(entry));
      core::Propagate(problem_.graph, priority, shardings_);
    }
    if (plan_.zero > 0) {
      if (mlir::failed(
              divideStates(module_, plan_, problem_, last, shardings_)))
        return failure();
      core::Propagate(problem_.graph, last, shardings_);
    }
    FailureOr<int> decomposed = decompose();
    if (mlir::failed(decomposed) || *decomposed > 0) return decomposed;
    warnOfAttention(
        core::ChooseLongAttention(shardings_, plan_.attention, problem_.graph));
    const plan::Experts experts = plan_.experts.value_or(plan::Experts());
    warnOfExperts(core::ChooseExpertExchange(
        shardings_, {experts.exchange, experts.rows}, problem_.graph));
    core::DelayReductions(problem_.graph, shardings_);
    if (mlir::failed(checkOwnStates(module_, plan_, problem_, shardings_)))
      return failure();
    warnOfIdleDivisions();
    warnOfIdleAxes();
    setMesh(module_, plan_.mesh);
    return 0;
  }

  Decided take() { return {std::move(problem_), std::move(shardings_)}; }

 private:
  // A division that applies to no dimension. `of_one`: dimensions of that name
  // exist, but all have size 1.
  struct Idle {
    const plan::ShardedDimension* division;
    bool scoped, of_one;
  };

  // Appends the axes to every dimension of that name in the entry's scope,
  // unless the value already uses them.
  void divide(const plan::ShardedDimension& division, int priority,
              bool scoped) {
    bool found = false, of_one = false;
    for (size_t id = 0; id < problem_.values.size(); ++id) {
      const auto& names = problem_.dims[id];
      if (!names ||
          llvm::is_contained(problem_.graph.values[id].barred, priority))
        continue;
      const std::vector<int64_t>& shape = problem_.graph.values[id].shape;
      core::Sharding& sharding = shardings_[id];
      for (auto [i, dim] : llvm::enumerate(sharding.dims)) {
        if (!dim.open || !(*names)[i].isNamed(division.dimension)) continue;
        if (shape[i] == 1) {
          of_one = true;
          continue;
        }
        found = true;
        if (append(division.axes, sharding, dim, priority)) {
          setBlock(dim, (*names)[i], shape[i]);
          if (division.dimension == "X")
            warnOfIdleExperts(division, dim, shape[i]);
        }
      }
      core::CanonicalizeBlocks(shape, sharding);
    }
    if (!found) idle_.push_back({&division, scoped, of_one});
  }

  // Warns, once per division, if devices have no experts.
  void warnOfIdleExperts(const plan::ShardedDimension& division,
                         const core::DimSharding& dim, int64_t experts) {
    const int64_t devices = core::SizeOf(dim.axes),
                  block = core::BlockOf(experts, dim),
                  busy = llvm::divideCeil(experts, block);
    if (busy >= devices || !warned_.insert(&division).second) return;
    mlir::emitWarning(module_.getLoc())
        << plan::Where(plan_, division.where) << ": shard 'X' divides "
        << experts << " experts over " << devices << " devices in blocks of "
        << block << ", so that " << devices - busy
        << " without any compute nothing; take a number of devices that "
           "divides the experts";
  }

  // Warns if the plan's `attention` is not what operations do.
  void warnOfAttention(const core::LongAttentionCounts& counts) {
    if (!plan_.attention) return;
    if (counts.divided == 0)
      mlir::emitWarning(module_.getLoc())
          << "attention: the choice has no effect, because no entry divides "
             "the sequence (L) of an attention; with dropout inside, attention "
             "is written out and gathers keys";
    else if (counts.as_asked < counts.divided)
      mlir::emitWarning(module_.getLoc())
          << "attention: " << counts.divided - counts.as_asked << " of "
          << counts.divided
          << " attentions gather keys, because their bias has a number for "
             "each pair of positions, they have fewer queries than keys, or "
             "their mask has sinks or blocks of keys";
  }

  // Warns if the plan's `experts` is not what operations do.
  void warnOfExperts(const core::ExpertCounts& counts) {
    if (!plan_.experts) return;
    if (counts.shared == 0)
      mlir::emitWarning(module_.getLoc())
          << "experts: the choice has no effect, because no axis divides both "
             "experts (X) and the rows that choose them (B, L)";
    else if (counts.as_asked < counts.shared)
      mlir::emitWarning(module_.getLoc())
          << "experts: " << counts.shared - counts.as_asked << " of "
          << counts.shared
          << " operations gather their rows, because an axis of X divides no "
             "rows";
    else if (plan_.experts->rows > 0 && counts.by_rows == 0)
      mlir::emitWarning(module_.getLoc())
          << "experts: the bound on rows has no effect, because all operations "
             "gather their rows, which moves fewer bytes; 'exchange: rows' "
             "sends them";
  }

  void warnOfIdleDivisions() {
    for (const Idle& idle : idle_) {
      const plan::ShardedDimension& division = *idle.division;
      auto warning = mlir::emitWarning(module_.getLoc())
                     << plan::Where(plan_, division.where) << ": shard '"
                     << division.dimension << "' divides nothing: ";
      if (division.dimension == "B" && plan_.microbatches > 1 && !hasBatch())
        warning << plan_.microbatches
                << " microbatches leave a batch of one row; take fewer, or a "
                   "larger batch";
      else if (idle.of_one)
        warning << "every dimension of that name has size 1";
      else
        warning << "no dimension "
                << (idle.scoped ? "in the scope of its entry" : "of this model")
                << " can be divided by that name; partita inspect shows the "
                   "names";
    }
  }

  // Dimensions of size 1 have no name.
  bool hasBatch() const {
    for (auto [id, names] : llvm::enumerate(problem_.dims)) {
      if (!names) continue;
      for (auto [name, size] :
           llvm::zip_equal(*names, problem_.graph.values[id].shape))
        if (size > 1 && name.isNamed("B")) return true;
    }
    return false;
  }

  // Skips axes that entries name: warnOfIdleDivisions covers them.
  void warnOfIdleAxes() {
    for (auto [i, axis] : llvm::enumerate(plan_.mesh.axes)) {
      const core::AxisRef whole = core::WholeAxis(plan_.mesh, i);
      const auto named = [&](const plan::Entry& entry) {
        return llvm::any_of(entry.dimensions,
                            [&](const plan::ShardedDimension& division) {
                              return core::OverlapAny(whole, division.axes);
                            });
      };
      const auto divides = [&](const core::Sharding& sharding) {
        return core::OverlapAny(whole, sharding.unreduced) ||
               llvm::any_of(sharding.dims, [&](const core::DimSharding& dim) {
                 return core::OverlapAny(whole, dim.axes);
               });
      };
      if (axis.size == 1 || llvm::any_of(plan_.shard, named) ||
          llvm::any_of(shardings_, divides))
        continue;
      mlir::emitWarning(module_.getLoc())
          << "axis '" << axis.name << "' divides nothing: its " << axis.size
          << " devices compute the same; add an entry for it, or leave it out "
             "of the mesh";
    }
  }

  static bool append(const std::vector<core::AxisRef>& axes,
                     const core::Sharding& sharding, core::DimSharding& dim,
                     int priority) {
    bool changed = false;
    for (core::AxisRef axis : axes) {
      if (core::Uses(sharding, axis)) continue;
      axis.priority = priority;
      dim.axes.push_back(axis);
      changed = true;
    }
    return changed;
  }

  // Keeps each unit of the first segment (a head, a row of an image) whole.
  static void setBlock(core::DimSharding& dim, const Dim& names, int64_t size) {
    const int64_t units = names.segments.empty() || names.segments[0].size == 0
                              ? size
                              : names.segments[0].size;
    dim.block =
        llvm::divideCeil(units, core::SizeOf(dim.axes)) * (size / units);
  }

  FailureOr<int> decompose() {
    llvm::SmallVector<Operation*> erased;
    for (auto [op, index] : problem_.operations) {
      auto composite = llvm::dyn_cast<nn::DecompositionOpInterface>(op);
      if (!composite ||
          core::AxesNeedingDecomposition(problem_.graph, index, shardings_)
              .empty())
        continue;
      mlir::OpBuilder builder(op);
      auto values = composite.decompose(builder);
      if (mlir::failed(values)) return failure();
      for (auto [old, fresh] : llvm::zip_equal(op->getResults(), *values)) {
        // The replacement keeps the names and annotations of the value.
        Operation* made = fresh.getDefiningOp();
        if (made && op->getNumResults() == made->getNumResults())
          for (llvm::StringRef kept : {kDimsAttr, dist::kShardingsAttr})
            if (mlir::Attribute attr = op->getAttr(kept))
              made->setAttr(kept, attr);
        old.replaceAllUsesWith(fresh);
      }
      erased.push_back(op);
    }
    // New operations may reuse the addresses of erased ones.
    for (Operation* op : erased) {
      for (Value result : op->getResults()) problem_.ids.erase(result);
      problem_.operations.erase(op);
      op->erase();
    }
    return static_cast<int>(erased.size());
  }

  mlir::ModuleOp module_;
  const plan::Plan& plan_;
  Problem problem_;
  std::vector<core::Sharding> shardings_;
  std::vector<Idle> idle_;
  // Divisions that leave devices without experts.
  llvm::DenseSet<const plan::ShardedDimension*> warned_;
};

// Builds the plan from the options of a pass.
absl::StatusOr<plan::Plan> planOf(const std::string& path,
                                  const std::string& mesh,
                                  const std::string& shard) {
  if (!path.empty()) return plan::ReadPlan(path);
  plan::Plan plan;
  plan.origin = "--shard";
  absl::StatusOr<core::Mesh> parsed = plan::ParseMeshOption(mesh);
  if (!parsed.ok()) return parsed.status();
  plan.mesh = *std::move(parsed);
  absl::StatusOr<std::vector<plan::Entry>> entries =
      plan::ParseShardOption(shard, plan.mesh);
  if (!entries.ok()) return entries.status();
  plan.shard = *std::move(entries);
  return plan;
}

struct ApplyPlanPass : impl::ApplyPlanPassBase<ApplyPlanPass> {
  using ApplyPlanPassBase::ApplyPlanPassBase;
  ApplyPlanPass(plan::Plan given, std::shared_ptr<Decided> decided)
      : given_(std::move(given)), decided_(std::move(decided)) {}

  void runOnOperation() override {
    absl::StatusOr<plan::Plan> plan =
        given_ ? *given_ : planOf(plan_path, mesh, shard);
    if (!plan.ok()) {
      mlir::emitError(getOperation().getLoc())
          << std::string(plan.status().message());
      return signalPassFailure();
    }
    if (mlir::failed(apply(*plan))) signalPassFailure();
  }

 private:
  LogicalResult apply(const plan::Plan& plan) {
    if (!decided_) return applyPlan(getOperation(), plan);
    FailureOr<Decided> decided = decideShardings(getOperation(), plan);
    if (mlir::succeeded(decided)) *decided_ = *std::move(decided);
    return decided;
  }

  std::optional<plan::Plan> given_;
  std::shared_ptr<Decided> decided_;
};

// Stores the entries as the user wrote them, for explanations.
void writeEntries(mlir::ModuleOp module, const plan::Plan& plan,
                  Problem& problem) {
  llvm::SmallVector<mlir::Attribute> texts;
  problem.graph.entries.clear();
  for (const plan::Entry& entry : plan.shard) {
    problem.graph.entries.push_back(plan::ToString(plan.mesh, entry) + ", " +
                                    plan::Where(plan, entry.where));
    texts.push_back(mlir::StringAttr::get(module.getContext(),
                                          problem.graph.entries.back()));
  }
  module->setAttr(kEntriesAttr,
                  mlir::ArrayAttr::get(module.getContext(), texts));
}

}  // namespace

FailureOr<Decided> decideShardings(mlir::ModuleOp module,
                                   const plan::Plan& plan, Problem before) {
  if (mlir::failed(checkMesh(module, plan))) return failure();
  reportLostAnnotations(module);
  if (mlir::failed(compressMomenta(module, plan))) return failure();
  if (mlir::failed(splitByScope(module, scopesOf(plan)))) return failure();
  Decided decided;
  decided.problem = std::move(before);
  for (;;) {
    Application application(module, plan, std::move(decided.problem));
    FailureOr<int> decomposed = application.run();
    if (mlir::failed(decomposed)) return failure();
    decided = application.take();
    if (*decomposed > 0) continue;
    writeEntries(module, plan, decided.problem);
    return decided;
  }
}

LogicalResult applyPlan(mlir::ModuleOp module, const plan::Plan& plan) {
  FailureOr<Decided> decided = decideShardings(module, plan);
  if (mlir::failed(decided)) return failure();
  writeShardings(decided->problem, decided->shardings);
  writeChoices(decided->problem);
  return success();
}

std::unique_ptr<mlir::Pass> createApplyPlanPass(
    plan::Plan plan, std::shared_ptr<Decided> decided) {
  return std::make_unique<ApplyPlanPass>(std::move(plan), std::move(decided));
}

}  // namespace partita::sharding
