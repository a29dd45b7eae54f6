// Sharding rules as plain data: text, and the check that a rule is well-formed
// and fits the types of an operation.
#include "dialects/nn/sharding_rule.h"

#include <algorithm>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {
namespace {

std::string textOf(const std::vector<TensorFactors>& tensors) {
  std::string text = "(";
  for (const TensorFactors& tensor : tensors) {
    text += &tensor == tensors.data() ? "[" : ", [";
    for (size_t dim = 0; dim < tensor.size(); ++dim) {
      if (dim > 0) text += ", ";
      if (tensor[dim].empty()) text += "1";
      for (int factor : tensor[dim]) text += factorName(factor);
    }
    text += "]";
  }
  return text + ")";
}

std::string textOf(const char* name, const std::vector<int>& operands) {
  if (operands.empty()) return "";
  std::string text = std::string(" ") + name + "={";
  for (size_t i = 0; i < operands.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(operands[i]);
  return text + "}";
}

// "operand 1" or "result 0".
std::string tensorName(const ShardingRule& rule, size_t tensor) {
  return tensor < rule.operands.size()
             ? "operand " + std::to_string(tensor)
             : "result " + std::to_string(tensor - rule.operands.size());
}

std::vector<TensorFactors> allTensors(const ShardingRule& rule) {
  std::vector<TensorFactors> tensors = rule.operands;
  tensors.insert(tensors.end(), rule.results.begin(), rule.results.end());
  return tensors;
}

std::string findFlawOfOperandLists(const ShardingRule& rule) {
  for (const std::vector<int>* list : {&rule.linear, &rule.multilinear}) {
    for (int operand : *list) {
      if (operand < 0 || operand >= static_cast<int>(rule.operands.size()))
        return "expected 'linear' and 'multilinear' to name operands, of which "
               "there are " +
               std::to_string(rule.operands.size()) + ", found " +
               std::to_string(operand);
    }
  }
  return "";
}

// Do the factors of dimension `dim` of this tensor multiply to `size`?
std::string findFlawOfDim(const ShardingRule& rule, size_t tensor, size_t dim,
                          const DimFactors& factors, int64_t size) {
  const std::string place =
      "dimension " + std::to_string(dim) + " of " + tensorName(rule, tensor);
  int64_t product = 1;
  for (int factor : factors) {
    const bool is_halo = isHalo(rule.factors[factor].kind);
    if (is_halo && factors.size() > 1)
      return "expected " + place + " to have the halo factor " +
             factorName(factor) + " alone, found " +
             std::to_string(factors.size()) + " factors";
    if (is_halo && tensor < rule.operands.size()) return "";
    product *= rule.factors[factor].size;
  }
  if (product == size) return "";
  return "expected the factors of " + place + " to multiply to its size " +
         std::to_string(size) + ", found " + std::to_string(product);
}

}  // namespace

bool isPartial(const ShardingRule& rule, int factor, size_t result) {
  const FactorKind kind = rule.factors[factor].kind;
  if (isReduced(kind)) return true;
  const auto holds = [factor](const TensorFactors& tensor) {
    return llvm::any_of(tensor, [factor](const DimFactors& dim) {
      return llvm::is_contained(dim, factor);
    });
  };
  return (kind == FactorKind::kCarried || kind == FactorKind::kHalo) &&
         !holds(rule.results[result]) && llvm::any_of(rule.results, holds) &&
         llvm::any_of(rule.operands, holds);
}

bool operator==(const Factor& a, const Factor& b) {
  return a.size == b.size && a.kind == b.kind && a.reduction == b.reduction;
}

bool operator==(const ShardingRule& a, const ShardingRule& b) {
  return a.factors == b.factors && a.operands == b.operands &&
         a.results == b.results && a.linear == b.linear &&
         a.multilinear == b.multilinear;
}

llvm::hash_code hash_value(const ShardingRule& rule) {
  return llvm::hash_value(toString(rule));
}

std::string factorName(int factor) {
  constexpr int kLetters = 18;
  if (factor < kLetters) return std::string(1, static_cast<char>('i' + factor));
  return "z_" + std::to_string(factor - kLetters + 1);
}

std::string toString(const ShardingRule& rule) {
  std::string text = textOf(rule.operands) + " -> " + textOf(rule.results);
  for (size_t i = 0; i < rule.factors.size(); ++i)
    text += (i > 0 ? ", " : " {") + factorName(static_cast<int>(i)) + "=" +
            std::to_string(rule.factors[i].size);
  text += rule.factors.empty() ? " {}" : "}";
  const char* const reductions[] = {"",     ":product", ":max",
                                    ":min", ":any",     ":all"};
  const std::pair<FactorKind, const char*> kinds[] = {
      {FactorKind::kReduced, "reduced"},
      {FactorKind::kHalo, "halo"},
      {FactorKind::kReducedHalo, "reduced_halo"},
      {FactorKind::kWhole, "whole"},
      {FactorKind::kDecompose, "decompose"}};
  for (const auto& [kind, name] : kinds) {
    std::string list;
    for (size_t i = 0; i < rule.factors.size(); ++i) {
      if (rule.factors[i].kind != kind) continue;
      list += (list.empty() ? "" : ", ") + factorName(static_cast<int>(i));
      if (kind == FactorKind::kReduced)
        list += reductions[static_cast<int>(rule.factors[i].reduction)];
    }
    if (!list.empty()) text += std::string(" ") + name + "={" + list + "}";
  }
  return text + textOf("linear", rule.linear) +
         textOf("multilinear", rule.multilinear);
}

std::string findFlaw(const ShardingRule& rule) {
  const int count = static_cast<int>(rule.factors.size());
  const std::vector<TensorFactors> tensors = allTensors(rule);
  std::vector<bool> in_result(count, false);
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    std::vector<bool> seen(count, false);
    for (const DimFactors& dim : tensors[tensor]) {
      for (int factor : dim) {
        if (factor < 0 || factor >= count)
          return "expected factors below " + std::to_string(count) +
                 ", found " + std::to_string(factor);
        if (seen[factor])
          return "expected each factor once in " + tensorName(rule, tensor) +
                 ", found " + factorName(factor) + " twice";
        seen[factor] = true;
        if (tensor >= rule.operands.size()) in_result[factor] = true;
      }
    }
  }
  for (int factor = 0; factor < count; ++factor) {
    const FactorKind kind = rule.factors[factor].kind;
    if (isReduced(kind) && in_result[factor])
      return "expected the reduced factor " + factorName(factor) +
             " in operands only, found it in a result";
    if ((kind == FactorKind::kCarried || kind == FactorKind::kHalo) &&
        !in_result[factor])
      return "expected factor " + factorName(factor) +
             ", which is carried, in a result, found it in operands only: it "
             "is 'reduced' or 'whole'";
  }
  return findFlawOfOperandLists(rule);
}

std::string findFlaw(const ShardingRule& rule, mlir::TypeRange operands,
                     mlir::TypeRange results) {
  if (rule.operands.size() != operands.size() ||
      rule.results.size() != results.size())
    return "expected " + std::to_string(operands.size()) + " operands and " +
           std::to_string(results.size()) + " results, found " +
           std::to_string(rule.operands.size()) + " and " +
           std::to_string(rule.results.size());
  std::string flaw = findFlaw(rule);
  const std::vector<TensorFactors> tensors = allTensors(rule);
  for (size_t tensor = 0; tensor < tensors.size() && flaw.empty(); ++tensor) {
    const bool is_operand = tensor < operands.size();
    const auto type = mlir::dyn_cast<mlir::RankedTensorType>(
        is_operand ? operands[tensor] : results[tensor - operands.size()]);
    const size_t rank = type ? type.getRank() : 0;
    if (tensors[tensor].size() != rank)
      return "expected " + std::to_string(rank) + " dimensions of " +
             tensorName(rule, tensor) + ", found " +
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
