// What follows from a rule, and rules as text.
#include "compiler/core/rule.h"

#include <algorithm>

namespace partita::core {
namespace {

std::string NameOf(int factor) {
  // i, j, ... z, then z_1, z_2 ...
  if (factor < 18) return std::string(1, static_cast<char>('i' + factor));
  return "z_" + std::to_string(factor - 17);
}

std::string ToString(const std::vector<TensorFactors>& tensors) {
  std::string text = "(";
  for (size_t t = 0; t < tensors.size(); ++t) {
    text += t > 0 ? ", [" : "[";
    for (size_t d = 0; d < tensors[t].size(); ++d) {
      if (d > 0) text += ", ";
      for (int factor : tensors[t][d]) text += NameOf(factor);
    }
    text += "]";
  }
  return text + ")";
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

}  // namespace

bool IsPartial(const Rule& rule, int factor, int result) {
  const FactorKind kind = rule.factors[factor].kind;
  if (IsReduced(kind)) return true;
  return (kind == FactorKind::kCarried || kind == FactorKind::kHalo) &&
         !Holds(rule.results[result], factor) &&
         AnyHolds(rule.results, factor) && AnyHolds(rule.operands, factor);
}

bool IsPartialInSome(const Rule& rule, int factor) {
  for (size_t result = 0; result < rule.results.size(); ++result)
    if (IsPartial(rule, factor, static_cast<int>(result))) return true;
  return false;
}

std::string ToString(const Rule& rule) {
  std::string text =
      ToString(rule.operands) + " -> " + ToString(rule.results) + " {";
  for (size_t i = 0; i < rule.factors.size(); ++i)
    text += (i > 0 ? ", " : "") + NameOf(static_cast<int>(i)) + "=" +
            std::to_string(rule.factors[i].size);
  text += "}";
  const std::pair<FactorKind, const char*> kinds[] = {
      {FactorKind::kReduced, "reduced"},
      {FactorKind::kHalo, "halo"},
      {FactorKind::kReducedHalo, "reduced_halo"},
      {FactorKind::kWhole, "whole"},
      {FactorKind::kDecompose, "decompose"}};
  for (const auto& [kind, name] : kinds) {
    std::string list;
    for (size_t i = 0; i < rule.factors.size(); ++i)
      if (rule.factors[i].kind == kind)
        list += (list.empty() ? "" : ", ") + NameOf(static_cast<int>(i));
    if (!list.empty()) text += std::string(" ") + name + "={" + list + "}";
  }
  return text;
}

}  // namespace partita::core
