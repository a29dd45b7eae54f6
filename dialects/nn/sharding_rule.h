// The sharding rule of an operation. dialects/terms/sharding_rule.h defines
// rules.
#ifndef PARTITA_DIALECTS_NN_SHARDING_RULE_H_
#define PARTITA_DIALECTS_NN_SHARDING_RULE_H_

#include <optional>
#include <string>

#include "dialects/terms/reduction.h"
#include "dialects/terms/sharding_rule.h"
#include "llvm/ADT/Hashing.h"
#include "mlir/IR/TypeRange.h"

namespace mlir {
class Operation;
}  // namespace mlir

namespace partita::terms {

// Needed by MLIR's attribute storage of #nn.rule, found by ADL.
llvm::hash_code hash_value(const ShardingRule& rule);

}  // namespace partita::terms

namespace partita::nn {

using terms::DimFactors;
using terms::Factor;
using terms::FactorKind;
using terms::Reduction;
using terms::ShardingRule;
using terms::TensorFactors;

// Returns the first defect of the rule, or the first misfit with an operation
// that has operands and results of these types, as the end of a message
// ("expected ..., found ..."). Empty if there is none.
std::string findFlaw(const ShardingRule& rule, mlir::TypeRange operands,
                     mlir::TypeRange results);

// Returns the rule that a user attached as `nn.rule`, else the rule of the
// ShardingRuleOpInterface, else nothing.
std::optional<ShardingRule> shardingRuleOf(mlir::Operation* op);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_SHARDING_RULE_H_
