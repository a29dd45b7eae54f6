// Tests of sharding rules as text.
#include "dialects/terms/sharding_rule.h"

#include <gtest/gtest.h>

namespace partita::terms {
namespace {

TEST(RuleTest, Text) {
  ShardingRule product;
  product.factors = {{4}, {8}, {2, FactorKind::kReduced}};
  product.operands = {{{0}, {2}}, {{2}, {1}}};
  product.results = {{{0}, {1}}};
  EXPECT_EQ(ToString(product),
            "([i, k], [k, j]) -> ([i, j]) {i=4, j=8, k=2} reduced={k}");
}

TEST(RuleTest, TextOfMergedMissingAndSpecialFactors) {
  ShardingRule rule;
  rule.factors = {{7, FactorKind::kHalo},
                  {3, FactorKind::kWhole},
                  {5, FactorKind::kDecompose},
                  {2, FactorKind::kDecompose}};
  rule.operands = {{{0, 1}, {}}, {}};
  rule.results = {{{2, 3}}};
  EXPECT_EQ(ToString(rule),
            "([ij, 1], []) -> ([kl]) {i=7, j=3, k=5, l=2} halo={i} whole={j} "
            "decompose={k, l}");
}

TEST(RuleTest, TextNamesAllReductionsButSums) {
  ShardingRule rule;
  for (const Reduction reduction : kReductions)
    rule.factors.push_back({2, FactorKind::kReduced, reduction});
  rule.operands = {{{0}, {1}, {2}, {3}, {4}, {5}}};
  rule.results = {{}};
  rule.multilinear = {0};
  EXPECT_EQ(ToString(rule),
            "([i, j, k, l, m, n]) -> ([]) {i=2, j=2, k=2, l=2, m=2, n=2} "
            "reduced={i, j:prod, k:max, l:min, m:any, n:all} multilinear={0}");
}

TEST(RuleTest, ManyFactorsHaveNames) {
  ShardingRule rule;
  rule.factors.resize(20);
  rule.results = {{{17}, {18}, {19}}};
  EXPECT_NE(ToString(rule).find("-> ([z, z_1, z_2])"), std::string::npos);
}

}  // namespace
}  // namespace partita::terms
