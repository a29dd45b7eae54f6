// Compares blocks of small tensors with an element-by-element lookup.
#include "runtime/executor/block_map.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/program/test_program.h"

namespace partita::executor {
namespace {

using program::AxisPart;

// A program whose only input has this shard, over a mesh a=2, b=3.
std::string Serialized(const std::vector<int64_t>& shape,
                       const std::vector<std::vector<AxisPart>>& axes) {
  program::ProgramT program = program::DividedProgram(4, 2, 3).program;
  program::PortT& port = *program.inputs[0];
  port.shard = program::MakeShard(shape, axes);
  port.type->shape.clear();
  for (size_t i = 0; i < shape.size(); ++i)
    port.type->shape.push_back(axes[i].empty() ? shape[i]
                                               : port.shard->dims[i]->block);
  return program::SerializeProgram(program);
}

class BlockMapTest
    : public ::testing::TestWithParam<std::vector<std::vector<AxisPart>>> {};

TEST_P(BlockMapTest, EveryElementIsWhereItsIndexSays) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{4, 6, 5}, std::vector<int64_t>{7, 1, 4},
        std::vector<int64_t>{1, 7, 1}, std::vector<int64_t>{6, 0, 3}}) {
    const std::string bytes = Serialized(shape, GetParam());
    const program::Program& program = *program::GetProgram(bytes.data());
    const program::Port& port = *program.inputs()->Get(0);
    std::vector<int> times(static_cast<size_t>(shape[0] * shape[1] * shape[2]));
    for (int64_t rank = 0; rank < 6; ++rank) {
      const program::MeshPlace place(program.mesh(), rank);
      const BlockMap block(port.shard(), *port.type(), place);
      const auto rows = program::OwnedBlock(*port.shard(), place);
      const auto* local = port.type()->shape();
      std::vector<int64_t> expected(static_cast<size_t>(block.local_count()),
                                    -1);
      for (int64_t i = rows[0].begin; i < rows[0].end; ++i) {
        for (int64_t j = rows[1].begin; j < rows[1].end; ++j) {
          for (int64_t k = rows[2].begin; k < rows[2].end; ++k) {
            const int64_t at =
                ((i - rows[0].begin) * local->Get(1) + j - rows[1].begin) *
                    local->Get(2) +
                k - rows[2].begin;
            expected[static_cast<size_t>(at)] =
                (i * shape[1] + j) * shape[2] + k;
          }
        }
      }
      std::vector<int64_t> found(expected.size(), -1);
      block.ForEachRun([&](int64_t global, int64_t at, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          found[static_cast<size_t>(at + i)] = global + i;
          ++times[static_cast<size_t>(global + i)];
        }
      });
      EXPECT_EQ(found, expected);
      bool padded = false, range = true;
      for (size_t i = 0; i < expected.size(); ++i) {
        padded = padded || expected[i] < 0;
        range = range && expected[i] == block.first() + static_cast<int64_t>(i);
      }
      EXPECT_EQ(block.HasPadding(), padded);
      EXPECT_EQ(block.IsRange(), range);
    }
    for (const int count : times)
      EXPECT_EQ(
          count, 6 / [&] {
            int shards = 1;
            for (const auto& axes : GetParam())
              for (const AxisPart& part : axes)
                shards *= static_cast<int>(part.size());
            return shards;
          }());
  }
}

const AxisPart kA(0, 1, 2);
const AxisPart kB(1, 1, 3);

INSTANTIATE_TEST_SUITE_P(
    Shards, BlockMapTest,
    ::testing::Values(std::vector<std::vector<AxisPart>>{{}, {}, {}},
                      std::vector<std::vector<AxisPart>>{{kA}, {}, {}},
                      std::vector<std::vector<AxisPart>>{{kA, kB}, {}, {}},
                      std::vector<std::vector<AxisPart>>{{}, {kB}, {}},
                      std::vector<std::vector<AxisPart>>{{}, {}, {kB, kA}},
                      std::vector<std::vector<AxisPart>>{{kA}, {}, {kB}},
                      std::vector<std::vector<AxisPart>>{{kB}, {kA}, {}}));

}  // namespace
}  // namespace partita::executor
