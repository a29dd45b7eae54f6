// Checks that the runtime counts the same bytes for a collective as the
// compiler did when it chose it.
#include "compiler/core/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/operation.h"

namespace partita {
namespace {

using comm::Kind;
using comm::Operation;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Bytes of the busiest device.
int64_t RuntimeCount(const Operation& operation, int n) {
  int64_t most = 0;
  for (int i = 0; i < n; ++i) {
    const comm::Traffic traffic = comm::TrafficOf(operation, n, i);
    most = std::max({most, traffic.sent, traffic.received});
  }
  return most;
}

int64_t CompilerCount(const Operation& operation, int n) {
  core::CollectiveWork work;
  work.group = n;
  work.input_bytes = operation.InputBytes();
  const auto rows = [](const std::vector<int64_t>& shape, int dim) {
    return dim < 0 ? 0 : shape[static_cast<size_t>(dim)];
  };
  work.rows = rows(operation.input_shape, operation.dim);
  work.output_rows = rows(operation.output_shape, operation.dim);
  work.other_rows = rows(operation.input_shape, operation.other_dim);
  work.other_output_rows = rows(operation.output_shape, operation.other_dim);
  work.size = operation.size;
  work.step = operation.step;
  work.offset = operation.offset;
  for (const core::CollectiveKind kind : terms::kCollectiveKinds) {
    if (std::string(core::NameOf(kind)) != comm::NameOf(operation.kind))
      continue;
    work.kind = kind;
    return core::BytesMoved(work);
  }
  ADD_FAILURE() << "no kind " << comm::NameOf(operation.kind);
  return -1;
}

class TrafficTest : public testing::TestWithParam<Kind> {
 protected:
  int64_t Random(int64_t first, int64_t last) {
    return std::uniform_int_distribution<int64_t>(first, last)(random_);
  }

  // A random collective on tensors with three dimensions, with even blocks of
  // any size.
  Operation RandomOperation(int n) {
    Operation op;
    op.kind = GetParam();
    op.dim = static_cast<int>(Random(0, 2));
    std::vector<int64_t> whole = {Random(1, 13), Random(1, 13), Random(1, 13)};
    std::vector<int64_t> divided = whole;
    const size_t dim = static_cast<size_t>(op.dim);
    divided[dim] = CeilDiv(whole[dim], n);
    op.input_shape = op.output_shape = whole;
    switch (op.kind) {
      case Kind::kAllGather:
        op.input_shape = divided;
        break;
      case Kind::kReduceScatter:
      case Kind::kAllSlice:
        op.output_shape = divided;
        break;
      case Kind::kAllToAll: {
        op.other_dim = (op.dim + 1) % 3;
        const size_t other = static_cast<size_t>(op.other_dim);
        op.output_shape = divided;
        op.input_shape[other] = CeilDiv(whole[other], n);
        break;
      }
      case Kind::kExchange:
        op.input_shape = divided;
        op.size = whole[dim];
        op.output_shape[dim] = Random(1, 9);
        op.step = Random(0, 5);
        op.offset = Random(-4, 4);
        break;
      case Kind::kSendRows:
      case Kind::kReturnRows:
        op.dim = 0;
        op.size = whole[0] * Random(1, 4);
        op.input_shape = {whole[0], whole[1]};
        op.output_shape = {n * op.size, whole[1]};
        if (op.kind == Kind::kReturnRows)
          std::swap(op.input_shape, op.output_shape);
        break;
      case Kind::kPermute:
        for (int i = 0; i < n; ++i) op.sources.push_back((i + 1) % n);
        break;
      case Kind::kBroadcast:
        op.root = static_cast<int>(Random(0, n - 1));
        break;
      default:
        break;
    }
    return op;
  }

  std::mt19937 random_{11};
};

TEST_P(TrafficTest, IsTheCompilers) {
  for (int round = 0; round < 2000; ++round) {
    const int n = static_cast<int>(Random(1, 6));
    const Operation op = RandomOperation(n);
    const int64_t expected = CompilerCount(op, n);
    EXPECT_EQ(RuntimeCount(op, n), expected)
        << comm::Describe(op) << " among " << n << ", round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TrafficTest,
                         testing::Values(Kind::kAllReduce, Kind::kAllGather,
                                         Kind::kReduceScatter, Kind::kAllToAll,
                                         Kind::kAllSlice, Kind::kExchange,
                                         Kind::kPermute, Kind::kBroadcast,
                                         Kind::kSendRows, Kind::kReturnRows),
                         [](const testing::TestParamInfo<Kind>& info) {
                           return std::string(comm::NameOf(info.param));
                         });

}  // namespace
}  // namespace partita
