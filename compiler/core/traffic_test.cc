// Compares bytes of collectives with counts made element by element.
#include "compiler/core/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace partita::core {
namespace {

int64_t Ring(CollectiveKind kind, int64_t group, int64_t bytes) {
  CollectiveWork work;
  work.kind = kind;
  work.group = group;
  work.input_bytes = bytes;
  return BytesMoved(work);
}

TEST(TrafficTest, OfARing) {
  EXPECT_EQ(Ring(CollectiveKind::kAllReduce, 4, 1000), 1500);
  EXPECT_EQ(Ring(CollectiveKind::kAllGather, 4, 1000), 3000);
  EXPECT_EQ(Ring(CollectiveKind::kAllSlice, 4, 1000), 0);
  EXPECT_EQ(Ring(CollectiveKind::kPermute, 4, 1000), 1000);
  EXPECT_EQ(Ring(CollectiveKind::kAllReduce, 1, 1000), 0);
}

CollectiveWork Scatter(int64_t group, int64_t rows, int64_t output_rows) {
  CollectiveWork work;
  work.kind = CollectiveKind::kReduceScatter;
  work.group = group;
  work.input_bytes = rows * 4;
  work.rows = rows;
  work.output_rows = output_rows;
  return work;
}

TEST(TrafficTest, OfAReduceScatterTheFirstDeviceHasMost) {
  EXPECT_EQ(BytesMoved(Scatter(4, 100, 25)), 300);
  // 7 rows over 2: the second device sends 4.
  EXPECT_EQ(BytesMoved(Scatter(2, 7, 4)), 16);
  // 2 rows over 4: the first device receives its row from three others.
  EXPECT_EQ(BytesMoved(Scatter(4, 2, 1)), 12);
}

// Owner of row `row` in blocks of `block` rows.
int64_t OwnerOf(int64_t row, int64_t block) { return row / block; }

int64_t BusiestOf(const std::vector<int64_t>& sent,
                  const std::vector<int64_t>& received) {
  return std::max(*std::max_element(sent.begin(), sent.end()),
                  *std::max_element(received.begin(), received.end()));
}

TEST(TrafficTest, OfAnAllToAllEqualsACount) {
  for (int64_t group = 1; group <= 5; ++group) {
    for (int64_t divided = 1; divided <= 9; ++divided) {
      for (int64_t gathered = 1; gathered <= 9; ++gathered) {
        CollectiveWork work;
        work.kind = CollectiveKind::kAllToAll;
        work.group = group;
        work.rows = divided;
        work.output_rows = (divided + group - 1) / group;
        work.other_output_rows = gathered;
        work.other_rows = (gathered + group - 1) / group;
        work.input_bytes = 4 * work.rows * work.other_rows;
        std::vector<int64_t> sent(static_cast<size_t>(group));
        std::vector<int64_t> received(static_cast<size_t>(group));
        for (int64_t i = 0; i < divided; ++i) {
          for (int64_t j = 0; j < gathered; ++j) {
            const int64_t from = OwnerOf(j, work.other_rows);
            const int64_t to = OwnerOf(i, work.output_rows);
            if (from == to) continue;
            sent[static_cast<size_t>(from)] += 4;
            received[static_cast<size_t>(to)] += 4;
          }
        }
        EXPECT_EQ(BytesMoved(work), BusiestOf(sent, received))
            << group << " " << divided << " " << gathered;
      }
    }
  }
}

TEST(TrafficTest, OfAnExchangeEqualsACount) {
  for (int64_t group = 1; group <= 4; ++group)
    for (int64_t size = 1; size <= 9; ++size)
      for (int64_t block = (size + group - 1) / group; block <= size; ++block)
        for (int64_t window = 1; window <= 5; ++window)
          for (int64_t step = -3; step <= 3; ++step)
            for (int64_t offset = -2; offset <= (step < 0 ? size : 2);
                 ++offset) {
              CollectiveWork work;
              work.kind = CollectiveKind::kExchange;
              work.group = group;
              work.rows = block;
              work.output_rows = window;
              work.size = size;
              work.step = step;
              work.offset = offset;
              work.input_bytes = 4 * block;
              std::vector<int64_t> sent(static_cast<size_t>(group));
              std::vector<int64_t> received(static_cast<size_t>(group));
              for (int64_t to = 0; to < group; ++to) {
                for (int64_t k = 0; k < window; ++k) {
                  const int64_t row = to * step + offset + k;
                  if (row < 0 || row >= size) continue;
                  const int64_t from = OwnerOf(row, block);
                  if (from == to) continue;
                  sent[static_cast<size_t>(from)] += 4;
                  received[static_cast<size_t>(to)] += 4;
                }
              }
              EXPECT_EQ(BytesMoved(work), BusiestOf(sent, received))
                  << group << " " << size << " " << block << " " << window
                  << " " << step << " " << offset;
            }
}

TEST(TrafficTest, OfNothingIsNothing) {
  CollectiveWork work;
  work.kind = CollectiveKind::kExchange;
  work.group = 4;
  EXPECT_EQ(BytesMoved(work), 0);
}

}  // namespace
}  // namespace partita::core
