// Tests the texts of conflicts and which tensors each conflict concerns.
#include "compiler/core/conflict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/core/test_graph.h"

namespace partita::core {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// y[L, M] = x[L, E] w[E, M], where M and L claim the same axis.
class ConflictTest : public GraphTest {
 protected:
  ConflictTest() {
    MakeMesh({{"tensor", 2}, {"data", 2}});
    x_ = AddValue({8, 4}, "tensor, ?", "norm", 2);
    w_ = AddValue({4, 16}, "?, tensor", "up.weight", 1);
    const int y = AddValue({8, 16});
    op_ = AddOp("i k, k j -> i j", {x_, w_}, {y});
  }

  OpSharding Resolved() { return Resolve(graph_, op_, shardings_); }

  int x_, w_, op_;
};

TEST_F(ConflictTest, SpeaksOfDimensionsAndEntriesByTheirNames) {
  graph_.values[x_].dims = {"L", "E"};
  graph_.values[w_].dims = {"E", "M"};
  graph_.entries = {"{M: tensor, N: tensor}, plan.yaml:3:5",
                    "{L: tensor}, plan.yaml:4:5"};
  const OpSharding resolved = Resolved();
  ASSERT_THAT(resolved.conflicts, SizeIs(1));
  EXPECT_EQ(Describe(graph_, resolved.conflicts[0]),
            "Axis 'tensor' stays with dimension 1 (M) of 'up.weight': its "
            "entry ({M: tensor, N: tensor}, plan.yaml:3:5) comes before that "
            "of dimension 0 (L) of 'norm' ({L: tensor}, plan.yaml:4:5)");
}

TEST_F(ConflictTest, SpeaksOfNumbersWhereThereAreNoNames) {
  EXPECT_EQ(Describe(graph_, Resolved().conflicts.at(0)),
            "Axis 'tensor' stays with dimension 1 of 'up.weight': its entry "
            "(priority 1) comes before that of dimension 0 of 'norm' "
            "(priority 2)");
}

TEST_F(ConflictTest, HasBothSidesAsData) {
  const Conflict conflict = Resolved().conflicts.at(0);
  EXPECT_EQ(conflict.kind, ConflictKind::kContested);
  EXPECT_EQ(conflict.op, op_);
  EXPECT_EQ(conflict.kept.factor, 2);  // j
  EXPECT_EQ(conflict.kept.tensor, 1);
  EXPECT_EQ(conflict.kept.axis.priority, 1);
  EXPECT_EQ(conflict.lost.factor, 0);  // i
  EXPECT_EQ(conflict.lost.tensor, 0);
  EXPECT_EQ(conflict.lost.axis.priority, 2);
}

// x is gathered because of the conflict; w keeps its sharding.
TEST_F(ConflictTest, IsOfTheTensorsThatHaveToChange) {
  const OpSharding resolved = Resolved();
  const Conflict& conflict = resolved.conflicts.at(0);
  EXPECT_TRUE(Concerns(graph_, conflict, 0, shardings_[x_]));
  EXPECT_FALSE(Concerns(graph_, conflict, 1, shardings_[w_]));
  // A replicated weight is sliced because of the conflict.
  EXPECT_TRUE(Concerns(graph_, conflict, 1, Replicated(2)));
  EXPECT_FALSE(Concerns(graph_, conflict, 0, Replicated(2)));
}

TEST_F(ConflictTest, OfTwoThatDivideOneFactorTheOneThatGivesWay) {
  shardings_[x_] = shardings_[w_] = Replicated(2);
  Annotate(x_, "?, data", 2);
  Annotate(w_, "tensor, ?", 1);
  const OpSharding resolved = Resolved();
  ASSERT_THAT(resolved.conflicts, SizeIs(1));
  const Conflict& conflict = resolved.conflicts[0];
  EXPECT_EQ(Describe(graph_, conflict),
            "Dimension 0 of 'up.weight' is divided over tensor and dimension 1 "
            "of 'norm' over data: the first is kept, its entry (priority 1) "
            "comes before the other's (priority 2)");
  EXPECT_TRUE(Concerns(graph_, conflict, 0, shardings_[x_]));
  EXPECT_FALSE(Concerns(graph_, conflict, 1, shardings_[w_]));
}

}  // namespace
}  // namespace partita::core
