// Properties derived from a rule, the text form of rules, and the check that a
// rule is well-formed.
#include "dialects/terms/sharding_rule.h"

#include <algorithm>
#include <utility>

namespace partita::terms {
namespace {

std::string TextOf(const std::vector<TensorFactors>& tensors) {
  std::string text = "(";
  for (const TensorFactors& tensor : tensors) {
    text += &tensor == tensors.data() ? "[" : ", [";
    for (size_t dim = 0; dim < tensor.size(); ++dim) {
      if (dim > 0) text += ", ";
      if (tensor[dim].empty()) text += "1";
      for (int factor : tensor[dim]) text += FactorName(factor);
    }
    text += "]";
  }
  return text + ")";
}

std::string TextOf(const char* name, const std::vector<int>& operands) {
  if (operands.empty()) return "";
  std::string text = std::string(" ") + name + "={";
  for (size_t i = 0; i < operands.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(operands[i]);
  return text + "}";
}

std::vector<TensorFactors> AllTensors(const ShardingRule& rule) {
  std::vector<TensorFactors> tensors = rule.operands;
  tensors.insert(tensors.end(), rule.results.begin(), rule.results.end());
  return tensors;
}

bool Holds(const TensorFactors& tensor, int factor) {
  return std::any_of(
      tensor.begin(), tensor.end(), [factor](const DimFactors& dim) {
        return std::find(dim.begin(), dim.end(), factor) != dim.end();
      });
}

bool AnyHolds(const std::vector<TensorFactors>& tensors, int factor) {
  return std::any_of(
      tensors.begin(), tensors.end(),
      [factor](const TensorFactors& tensor) { return Holds(tensor, factor); });
}

std::string FindFlawOfOperandLists(const ShardingRule& rule) {
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

}  // namespace

bool IsPartial(const ShardingRule& rule, int factor, int result) {
  const FactorKind kind = rule.factors[factor].kind;
  if (IsReduced(kind)) return true;
  return (kind == FactorKind::kCarried || kind == FactorKind::kHalo) &&
         !Holds(rule.results[result], factor) &&
         AnyHolds(rule.results, factor) && AnyHolds(rule.operands, factor);
}

bool IsPartialInSome(const ShardingRule& rule, int factor) {
  for (size_t result = 0; result < rule.results.size(); ++result)
    if (IsPartial(rule, factor, static_cast<int>(result))) return true;
  return false;
}

bool operator==(const Factor& a, const Factor& b) {
  return a.size == b.size && a.kind == b.kind && a.reduction == b.reduction &&
         a.keeps_axes == b.keeps_axes;
}

bool operator==(const AttentionFactors& a, const AttentionFactors& b) {
  return a.queries == b.queries && a.keys == b.keys && a.heads == b.heads &&
         a.sees_absolute_keys == b.sees_absolute_keys;
}

bool operator==(const ShardingRule& a, const ShardingRule& b) {
  return a.factors == b.factors && a.operands == b.operands &&
         a.results == b.results && a.linear == b.linear &&
         a.multilinear == b.multilinear && a.attention == b.attention &&
         a.experts == b.experts;
}

std::string FactorName(int factor) {
  constexpr int kLetters = 18;
  if (factor < kLetters) return std::string(1, static_cast<char>('i' + factor));
  return "z_" + std::to_string(factor - kLetters + 1);
}

std::string TensorName(const ShardingRule& rule, int tensor) {
  const int operands = static_cast<int>(rule.operands.size());
  return tensor < operands ? "operand " + std::to_string(tensor)
                           : "result " + std::to_string(tensor - operands);
}

std::string ToString(const ShardingRule& rule) {
  std::string text = TextOf(rule.operands) + " -> " + TextOf(rule.results);
  for (size_t i = 0; i < rule.factors.size(); ++i)
    text += (i > 0 ? ", " : " {") + FactorName(static_cast<int>(i)) + "=" +
            std::to_string(rule.factors[i].size);
  text += rule.factors.empty() ? " {}" : "}";
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
      list += (list.empty() ? "" : ", ") + FactorName(static_cast<int>(i));
      const Reduction reduction = rule.factors[i].reduction;
      if (kind == FactorKind::kReduced && reduction != Reduction::kSum)
        list += std::string(":") + NameOf(reduction);
    }
    if (!list.empty()) text += std::string(" ") + name + "={" + list + "}";
  }
  std::string keeping;
  for (size_t i = 0; i < rule.factors.size(); ++i)
    if (rule.factors[i].keeps_axes)
      keeping +=
          (keeping.empty() ? "" : ", ") + FactorName(static_cast<int>(i));
  if (!keeping.empty()) text += " keeps={" + keeping + "}";
  return text + TextOf("linear", rule.linear) +
         TextOf("multilinear", rule.multilinear);
}

std::string FindFlaw(const ShardingRule& rule) {
  const int count = static_cast<int>(rule.factors.size());
  const std::vector<TensorFactors> tensors = AllTensors(rule);
  std::vector<bool> in_result(count, false);
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    std::vector<bool> seen(count, false);
    for (const DimFactors& dim : tensors[tensor]) {
      for (int factor : dim) {
        if (factor < 0 || factor >= count)
          return "expected factors below " + std::to_string(count) +
                 ", found " + std::to_string(factor);
        if (seen[factor])
          return "expected each factor once in " +
                 TensorName(rule, static_cast<int>(tensor)) + ", found " +
                 FactorName(factor) + " twice";
        seen[factor] = true;
        if (tensor >= rule.operands.size()) in_result[factor] = true;
      }
    }
  }
  for (int factor = 0; factor < count; ++factor) {
    const FactorKind kind = rule.factors[factor].kind;
    if (IsReduced(kind) && in_result[factor])
      return "expected the reduced factor " + FactorName(factor) +
             " in operands only, found it in a result";
    if ((kind == FactorKind::kCarried || kind == FactorKind::kHalo) &&
        !in_result[factor])
      return "expected factor " + FactorName(factor) +
             ", which is carried, in a result, found it in operands only: it "
             "is 'reduced' or 'whole'";
  }
  return FindFlawOfOperandLists(rule);
}

}  // namespace partita::terms
