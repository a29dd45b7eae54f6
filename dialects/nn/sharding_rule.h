// The sharding rule of an operation: dialects/terms/sharding_rule.h says what a
// rule is.
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

// MLIR's storage of #nn.rule finds it by its argument.
llvm::hash_code hash_value(const ShardingRule& rule);

}  // namespace partita::terms

namespace partita::nn {

using terms::DimFactors;
using terms::Factor;
using terms::FactorKind;
using terms::Reduction;
using terms::ShardingRule;
using terms::TensorFactors;

// What is wrong with the rule, or with it for an operation with operands and
// results of these types, as the end of a message ("expected ..., found ...");
// empty where nothing is.
std::string findFlaw(const ShardingRule& rule, mlir::TypeRange operands,
                     mlir::TypeRange results);

// The rule a user attached to the operation as `nn.rule`, else that of its
// ShardingRuleOpInterface, else none.
std::optional<ShardingRule> shardingRuleOf(mlir::Operation* op);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_SHARDING_RULE_H_
