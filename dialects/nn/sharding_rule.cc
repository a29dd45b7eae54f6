// Finds the rule of an operation, and checks that a rule fits the operation's
// types.
#include "dialects/nn/sharding_rule.h"

#include "dialects/nn/dialect.h"

namespace partita::terms {

llvm::hash_code hash_value(const ShardingRule& rule) {
  return llvm::hash_value(ToString(rule));
}

}  // namespace partita::terms

namespace partita::nn {
namespace {

using terms::FactorName;
using terms::TensorName;

// Checks that the factors of dimension `dim` of this tensor multiply to `size`.
std::string findFlawOfDim(const ShardingRule& rule, size_t tensor, size_t dim,
                          const DimFactors& factors, int64_t size) {
  const std::string place = "dimension " + std::to_string(dim) + " of " +
                            TensorName(rule, static_cast<int>(tensor));
  int64_t product = 1;
  for (int factor : factors) {
    const bool is_halo = IsHalo(rule.factors[factor].kind);
    if (is_halo && factors.size() > 1)
      return "expected " + place + " to have the halo factor " +
             FactorName(factor) + " alone, found " +
             std::to_string(factors.size()) + " factors";
    if (is_halo && tensor < rule.operands.size()) return "";
    product *= rule.factors[factor].size;
  }
  if (product == size) return "";
  return "expected the factors of " + place + " to multiply to its size " +
         std::to_string(size) + ", found " + std::to_string(product);
}

}  // namespace

std::string findFlaw(const ShardingRule& rule, mlir::TypeRange operands,
                     mlir::TypeRange results) {
  if (rule.operands.size() != operands.size() ||
      rule.results.size() != results.size())
    return "expected " + std::to_string(operands.size()) + " operands and " +
           std::to_string(results.size()) + " results, found " +
           std::to_string(rule.operands.size()) + " and " +
           std::to_string(rule.results.size());
  std::string flaw = FindFlaw(rule);
  std::vector<TensorFactors> tensors = rule.operands;
  tensors.insert(tensors.end(), rule.results.begin(), rule.results.end());
  for (size_t tensor = 0; tensor < tensors.size() && flaw.empty(); ++tensor) {
    const bool is_operand = tensor < operands.size();
    const auto type = mlir::dyn_cast<mlir::RankedTensorType>(
        is_operand ? operands[tensor] : results[tensor - operands.size()]);
    const size_t rank = type ? type.getRank() : 0;
    if (tensors[tensor].size() != rank)
      return "expected " + std::to_string(rank) + " dimensions of " +
             TensorName(rule, static_cast<int>(tensor)) + ", found " +
             std::to_string(tensors[tensor].size());
    for (size_t dim = 0; dim < rank && flaw.empty(); ++dim)
      flaw = findFlawOfDim(rule, tensor, dim, tensors[tensor][dim],
                           type.getDimSize(dim));
  }
  return flaw;
}

std::optional<ShardingRule> shardingRuleOf(mlir::Operation* op) {
  if (auto attr = op->getAttrOfType<RuleAttr>(kRuleAttr)) return attr.getRule();
  if (auto model = mlir::dyn_cast<ShardingRuleOpInterface>(op))
    return model.getShardingRule();
  return std::nullopt;
}

}  // namespace partita::nn
