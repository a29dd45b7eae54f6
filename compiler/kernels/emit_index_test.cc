// Checks each identity of index arithmetic by going through all values.
#include "compiler/kernels/emit_index.h"

#include <gtest/gtest.h>

#include <map>

namespace partita::kernels {
namespace {

class EmitIndex : public testing::Test {
 protected:
  const Symbol* symbol(int64_t extent) {
    Symbol symbol;
    symbol.extent = extent;
    symbol.id = symbols_.size();
    symbols_.push_back(std::make_unique<Symbol>(symbol));
    return symbols_.back().get();
  }

  using Values = std::map<const Symbol*, int64_t>;
  static int64_t valueOf(const Index& index, const Values& values) {
    int64_t result = index.offset();
    for (const Term& term : index.terms()) {
      int64_t digit = values.at(term.symbol) / term.divisor;
      result += term.scale * (term.modulus == 0 ? digit : digit % term.modulus);
    }
    return result;
  }

  // Calls `check` with every combination of values.
  void forAll(const std::function<void(const Values&)>& check) {
    int64_t total = 1;
    for (auto& symbol : symbols_) total *= symbol->extent;
    for (int64_t i = 0; i < total; ++i) {
      Values values;
      int64_t rest = i;
      for (auto& symbol : symbols_) {
        values[symbol.get()] = rest % symbol->extent;
        rest /= symbol->extent;
      }
      check(values);
    }
  }

  std::vector<std::unique_ptr<Symbol>> symbols_;
};

TEST_F(EmitIndex, SplitAndJoinedIsTheSame) {
  const Symbol* t = symbol(120);
  Index rest, last;
  std::tie(rest, last) = *Index(t).trySplit(5);
  Index first, middle;
  std::tie(first, middle) = *rest.trySplit(4);
  EXPECT_EQ((first * 4 + middle) * 5 + last, Index(t));
  forAll([&](const Values& values) {
    EXPECT_EQ(valueOf(last, values), values.at(t) % 5);
    EXPECT_EQ(valueOf(middle, values), values.at(t) / 5 % 4);
    EXPECT_EQ(valueOf(first, values), values.at(t) / 20);
  });
}

TEST_F(EmitIndex, JoinedLoopsSplitAtTheirSizes) {
  const Symbol *i = symbol(3), *j = symbol(4), *k = symbol(6);
  Index flat =
      linearize({Index(i), Index(j), Index(k)}, rowMajorStrides({3, 4, 6}));
  Index outer, inner;
  std::tie(outer, inner) = *flat.trySplit(6);
  EXPECT_EQ(inner, Index(k));
  EXPECT_EQ(outer, Index(i) * 4 + Index(j));
}

TEST_F(EmitIndex, SplitsInsideADigit) {
  const Symbol *i = symbol(3), *k = symbol(12);
  Index flat = Index(i) * 12 + Index(k);
  Index outer, inner;
  std::tie(outer, inner) = *flat.trySplit(4);
  forAll([&](const Values& values) {
    int64_t value = values.at(i) * 12 + values.at(k);
    EXPECT_EQ(valueOf(outer, values), value / 4);
    EXPECT_EQ(valueOf(inner, values), value % 4);
  });
}

TEST_F(EmitIndex, RefusesWhatCarries) {
  const Symbol* k = symbol(12);
  EXPECT_FALSE((Index(k) + Index(int64_t{1})).trySplit(12));
  EXPECT_FALSE(Index(k).trySplit(12)->first.laneSymbol());
  EXPECT_FALSE((Index(k) * -1 + Index(int64_t{11})).trySplit(4));
  EXPECT_FALSE((Index(k) * 3).trySplit(9 + 2));
}

TEST_F(EmitIndex, EverySplitThatSucceedsIsRight) {
  const Symbol *i = symbol(4), *j = symbol(9), *k = symbol(10);
  int succeeded = 0;
  for (int64_t size = 1; size <= 60; ++size) {
    for (int64_t scale : {1, 2, 9, 10, 90}) {
      Index index = Index(i) * (scale * 9) + Index(j) * scale + Index(k) * 2 +
                    Index(int64_t{3});
      auto parts = index.trySplit(size);
      if (!parts) continue;
      ++succeeded;
      forAll([&](const Values& values) {
        ASSERT_EQ(valueOf(parts->first, values), valueOf(index, values) / size)
            << size << " " << scale;
        ASSERT_EQ(valueOf(parts->second, values), valueOf(index, values) % size)
            << size << " " << scale;
      });
    }
  }
  EXPECT_GT(succeeded, 10);
}

TEST_F(EmitIndex, LeavesOutWhatIsAlwaysZero) {
  const Symbol *one = symbol(1), *k = symbol(8);
  EXPECT_TRUE(Index(one).isConstant());
  EXPECT_EQ(Index(k).trySplit(8)->first, Index());
  EXPECT_EQ(Index(k) + Index(k) * -1, Index());
}

TEST_F(EmitIndex, KnowsItsRange) {
  const Symbol* k = symbol(8);
  EXPECT_TRUE(Index(k).within(8));
  EXPECT_FALSE(Index(k).within(7));
  EXPECT_FALSE((Index(k) + Index(int64_t{-1})).within(8));
  EXPECT_TRUE((Index(k) * -1 + Index(int64_t{7})).within(8));
}

}  // namespace
}  // namespace partita::kernels
