// Test fixture: graphs from einsum-like text, shardings as text.
#ifndef PARTITA_COMPILER_CORE_TEST_GRAPH_H_
#define PARTITA_COMPILER_CORE_TEST_GRAPH_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "compiler/core/propagate.h"

namespace partita::core {

class GraphTest : public ::testing::Test {
 protected:
  void MakeMesh(std::vector<Axis> axes) { graph_.mesh.axes = std::move(axes); }

  int AddValue(std::vector<int64_t> shape, const std::string& text = "",
               const std::string& name = "", int priority = 0) {
    graph_.values.push_back({shape, 4, name});
    shardings_.push_back(Replicated(static_cast<int>(shape.size())));
    const int value = static_cast<int>(graph_.values.size()) - 1;
    if (!text.empty()) Annotate(value, text, priority);
    return value;
  }

  // Text "a b, , c?" lists the axes of each dimension; a trailing ? leaves the
  // dimension open, "a:1:2" is the part a:(1)2. All axes have the given
  // priority.
  void Annotate(int value, const std::string& text, int priority = 0) {
    std::stringstream dims(text + ",");
    std::string dim;
    for (size_t d = 0; std::getline(dims, dim, ','); ++d) {
      DimSharding& to = shardings_[value].dims.at(d);
      to.open = dim.find('?') != std::string::npos;
      if (to.open) dim.erase(dim.find('?'));
      std::stringstream axes(dim);
      for (std::string axis; axes >> axis;) to.axes.push_back(Ref(axis));
      to.SetPriority(priority);
    }
  }

  // Appends an axis, as an entry of a plan does.
  void Append(int value, int dim, const std::string& axis, int priority) {
    AxisRef ref = Ref(axis);
    ref.priority = priority;
    shardings_[value].dims[dim].axes.push_back(ref);
  }

  AxisRef Ref(const std::string& text) const {
    const size_t colon = text.find(':');
    AxisRef ref =
        WholeAxis(graph_.mesh, graph_.mesh.Find(text.substr(0, colon)));
    if (colon == std::string::npos) return ref;
    const size_t second = text.find(':', colon + 1);
    ref.pre = std::stoll(text.substr(colon + 1, second - colon - 1));
    ref.size = std::stoll(text.substr(second + 1));
    return ref;
  }

  // Rule "i k, k j -> i j": a dimension of several factors is "(i j)", of none
  // "1". Sizes come from the values; sizes of merged factors from `sizes`.
  int AddOp(const std::string& rule, std::vector<int> operands,
            std::vector<int> results, std::map<char, int64_t> sizes = {},
            std::map<char, FactorKind> kinds = {}) {
    Op op;
    op.operands = std::move(operands);
    op.results = std::move(results);
    const size_t arrow = rule.find("->");
    std::map<char, int> factors;
    Parse(rule.substr(0, arrow), op.operands, sizes, factors, op.rule,
          op.rule.operands);
    Parse(rule.substr(arrow + 2), op.results, sizes, factors, op.rule,
          op.rule.results);
    for (const auto& [name, factor] : factors) {
      if (kinds.count(name))
        op.rule.factors[factor].kind = kinds[name];
      else if (rule.find(name, arrow) == std::string::npos)
        op.rule.factors[factor].kind = FactorKind::kReduced;
    }
    graph_.ops.push_back(std::move(op));
    return static_cast<int>(graph_.ops.size()) - 1;
  }

  // Adds an elementwise operation on values of one shape.
  int AddElementwise(std::vector<int> operands, int result) {
    std::string dims, rule;
    for (size_t d = 0; d < graph_.values[result].shape.size(); ++d)
      dims += std::string(1, static_cast<char>('i' + d)) + " ";
    for (size_t i = 0; i < operands.size(); ++i)
      rule += (i > 0 ? ", " : "") + dims;
    const int op = AddOp(rule + "->" + dims, std::move(operands), {result});
    graph_.ops[op].round = 0;
    return op;
  }

  void Run(int priority = 0) {
    for (int p = 0; p <= priority; ++p) Propagate(graph_, p, shardings_);
  }

  // Formats a sharding without marks of open dimensions.
  std::string Text(Sharding sharding) const {
    for (DimSharding& dim : sharding.dims) dim.open = false;
    return ToString(graph_.mesh, sharding);
  }
  std::string Text(int value) const { return Text(shardings_[value]); }

  Graph graph_;
  std::vector<Sharding> shardings_;

 private:
  void Parse(const std::string& text, const std::vector<int>& values,
             const std::map<char, int64_t>& sizes, std::map<char, int>& factors,
             ShardingRule& rule, std::vector<TensorFactors>& tensors) {
    std::stringstream list(text + ",");
    std::string tensor;
    for (size_t t = 0; t < values.size() && std::getline(list, tensor, ',');
         ++t) {
      TensorFactors dims;
      bool merged = false;
      for (char c : tensor) {
        if (c == '(') {
          merged = true;
          dims.emplace_back();
        } else if (c == ')') {
          merged = false;
        } else if (c == '1') {
          dims.emplace_back();
        } else if (c != ' ') {
          if (!merged) dims.emplace_back();
          if (factors.count(c) == 0) {
            factors[c] = static_cast<int>(rule.factors.size());
            rule.factors.push_back({});
          }
          Factor& factor = rule.factors[factors[c]];
          if (sizes.count(c) > 0)
            factor.size = sizes.at(c);
          else if (!merged)
            factor.size = graph_.values[values[t]].shape[dims.size() - 1];
          dims.back().push_back(factors[c]);
        }
      }
      tensors.push_back(std::move(dims));
    }
  }
};

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_TEST_GRAPH_H_
