#include "compiler/core/rule.h"

#include <gtest/gtest.h>

namespace partita::core {
namespace {

TEST(RuleTest, Text) {
  Rule product;
  product.factors = {{4}, {8}, {2, FactorKind::kReduced}};
  product.operands = {{{0}, {2}}, {{2}, {1}}};
  product.results = {{{0}, {1}}};
  EXPECT_EQ(ToString(product),
            "([i, k], [k, j]) -> ([i, j]) {i=4, j=8, k=2} reduced={k}");
}

TEST(RuleTest, TextOfMergedMissingAndSpecialFactors) {
  Rule rule;
  rule.factors = {{7, FactorKind::kHalo},
                  {3, FactorKind::kWhole},
                  {5, FactorKind::kDecompose},
                  {2, FactorKind::kDecompose}};
  rule.operands = {{{0, 1}, {}}, {}};
  rule.results = {{{2, 3}}};
  EXPECT_EQ(ToString(rule),
            "([ij, ], []) -> ([kl]) {i=7, j=3, k=5, l=2} halo={i} whole={j} "
            "decompose={k, l}");
}

TEST(RuleTest, ManyFactorsHaveNames) {
  Rule rule;
  rule.factors.resize(20);
  rule.results = {{{17}, {18}, {19}}};
  EXPECT_NE(ToString(rule).find("-> ([z, z_1, z_2])"), std::string::npos);
}

}  // namespace
}  // namespace partita::core
