// Marks operations by the rules of a plan; see passes.td.
#include "compiler/autodiff/recompute.h"
#include "compiler/plan/names.h"
#include "compiler/recompute/passes.h"
#include "compiler/sharding/scopes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace partita::recompute {

#define GEN_PASS_DEF_MARKRECOMPUTATIONPASS
#include "compiler/recompute/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::Operation;
using plan::Recompute;

LogicalResult mark(mlir::ModuleOp module, const std::vector<Recompute>& rules,
                   const std::string& origin) {
  plan::Plan plan;
  plan.origin = origin;
  std::vector<sharding::Scope> scopes;
  for (const Recompute& rule : rules)
    scopes.push_back(
        {rule.at, plan::Where(plan, rule.where) + ": recompute at"});
  if (mlir::failed(sharding::splitByScope(module, scopes)))
    return mlir::failure();
  mlir::Builder builder(module.getContext());
  sharding::visitScopes(
      module, scopes, [&](Operation* op, const std::vector<bool>& holding) {
        for (size_t i = holding.size(); i-- > 0;) {
          if (!holding[i]) continue;
          op->setAttr(autodiff::kRecomputeAttr,
                      builder.getStringAttr(plan::NameOf(plan::RecomputeNames(),
                                                         rules[i].policy)));
          return;
        }
      });
  return mlir::success();
}

struct MarkRecomputationPass
    : impl::MarkRecomputationPassBase<MarkRecomputationPass> {
  using MarkRecomputationPassBase::MarkRecomputationPassBase;
  MarkRecomputationPass(std::vector<Recompute> given, std::string origin)
      : given_(std::move(given)), origin_(std::move(origin)) {}

  void runOnOperation() override {
    if (!rules.empty()) {
      auto parsed = plan::ParseRecomputeOption(rules);
      if (!parsed.ok()) {
        mlir::emitError(getOperation().getLoc())
            << std::string(parsed.status().message());
        return signalPassFailure();
      }
      given_ = *std::move(parsed);
    }
    if (!given_.empty() && mlir::failed(mark(getOperation(), given_, origin_)))
      signalPassFailure();
  }

 private:
  std::vector<Recompute> given_;
  std::string origin_ = "--recompute";
};

}  // namespace

std::unique_ptr<mlir::Pass> createMarkRecomputationPass(
    std::vector<Recompute> rules, std::string origin) {
  return std::make_unique<MarkRecomputationPass>(std::move(rules),
                                                 std::move(origin));
}

}  // namespace partita::recompute
