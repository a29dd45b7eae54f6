// Executes the sharding rules that users attach to operations, on small shapes,
// before any division uses them.
#include "compiler/sharding/passes.h"
#include "dialects/nn/rule_soundness.h"

namespace partita::sharding {

#define GEN_PASS_DEF_VERIFYRULESPASS
#include "compiler/sharding/passes.h.inc"

namespace {

constexpr int64_t kMaxShards = 8;
constexpr uint64_t kSeed = 1;

struct VerifyRulesPass : impl::VerifyRulesPassBase<VerifyRulesPass> {
  void runOnOperation() override {
    const mlir::WalkResult result =
        getOperation().walk([&](mlir::Operation* op) {
          const auto rule = op->getAttrOfType<nn::RuleAttr>(nn::kRuleAttr);
          if (!rule) return mlir::WalkResult::advance();
          ++verified;
          const std::string flaw = nn::findUnsoundnessShrunken(
              op, rule.getRule(), kMaxShards, kSeed);
          if (flaw.empty()) return mlir::WalkResult::advance();
          op->emitOpError() << "expected '" << nn::kRuleAttr
                            << "' to hold when the operation is divided by it, "
                               "found, on small shapes, "
                            << flaw;
          return mlir::WalkResult::interrupt();
        });
    if (result.wasInterrupted()) signalPassFailure();
  }
};

}  // namespace
}  // namespace partita::sharding
