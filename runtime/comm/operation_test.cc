// Geometry: pieces and blanks cover each output exactly once, and byte counts
// match the algorithms.
#include "runtime/comm/operation.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/comm/test_cases.h"

namespace partita::comm {
namespace {

void Count(const Box& box, std::vector<int>& touched) {
  ForEachRun(box, [&](int64_t, int64_t to) {
    for (int64_t i = 0; i < box.run; ++i)
      ++touched[static_cast<size_t>(to + i)];
  });
}

TEST(OperationTest, EveryByteComesFromOnePlace) {
  for (int n = 1; n <= 8; ++n) {
    for (const Operation& op : TestOperations(n)) {
      const bool reduces =
          op.kind == Kind::kAllReduce || op.kind == Kind::kReduceScatter;
      for (int receiver = 0; receiver < n; ++receiver) {
        if (op.kind == Kind::kGather && receiver > 0) continue;
        std::vector<int> touched(static_cast<size_t>(op.OutputBytes()), 0);
        for (const Box& blank : BlanksOf(op, n, receiver))
          Count(blank, touched);
        for (int sender = 0; sender < (reduces ? 1 : n); ++sender)
          Count(PieceOf(op, n, receiver, sender), touched);
        for (const int count : touched)
          ASSERT_EQ(count, 1) << Describe(op) << " dim " << op.dim << " to "
                              << base::TypeName(op.dtype, op.output_shape)
                              << " receiver " << receiver << " of " << n;
      }
    }
  }
}

TEST(OperationTest, LeadingDimensionsAreOneRun) {
  Operation op;
  op.kind = Kind::kAllGather;
  op.input_shape = {4, 8, 16};
  op.output_shape = {15, 8, 16};
  op.dim = 0;
  EXPECT_TRUE(PieceOf(op, 4, 0, 3).IsOneRun());
  EXPECT_EQ(PieceOf(op, 4, 0, 3).Bytes(), 3 * 8 * 16 * 4);
}

TEST(OperationTest, TrafficIsWhatTheBestAlgorithmMoves) {
  Operation op;
  op.input_shape = op.output_shape = {1024};
  EXPECT_EQ(TrafficOf(op, 4, 1).sent, 2 * 4096 / 4 * 3);
  op.kind = Kind::kAllGather;
  op.input_shape = {256};
  op.dim = 0;
  EXPECT_EQ(TrafficOf(op, 4, 1).received, 3 * 1024);
  op.kind = Kind::kAllSlice;
  std::swap(op.input_shape, op.output_shape);
  EXPECT_EQ(TrafficOf(op, 4, 1).received, 0);
  // A 3-wide stencil sends one row each way; the ends send only one.
  op.kind = Kind::kExchange;
  op.input_shape = {2, 10, 4};
  op.output_shape = {2, 12, 4};
  op.dim = 1;
  op.size = 40;
  op.step = 10;
  op.offset = -1;
  EXPECT_EQ(TrafficOf(op, 4, 1).sent, 2 * (2 * 4 * 4));
  EXPECT_EQ(TrafficOf(op, 4, 0).sent, 2 * 4 * 4);
}

TEST(OperationTest, FillIsConvertedToTheType) {
  Operation op;
  op.kind = Kind::kExchange;
  op.dtype = base::DType::kI8;
  op.fill = -1.0 / 0.0;
  EXPECT_EQ(FillOf(op), std::string(1, static_cast<char>(-128)));
  op.dtype = base::DType::kF32;
  const float lowest = -1.0f / 0.0f;
  EXPECT_EQ(FillOf(op), std::string(reinterpret_cast<const char*>(&lowest), 4));
}

}  // namespace
}  // namespace partita::comm
