// Bounds what runtime/cuda/nccl_plan packs, for every member of a group.
#include "runtime/program/library_limits.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <numeric>

namespace partita::program {
namespace {

// Packed parts begin at multiples of this many bytes.
constexpr int64_t kPartAlignment = 16;

int64_t Product(const std::vector<int64_t>& sizes, size_t count) {
  return std::accumulate(sizes.begin(),
                         sizes.begin() + static_cast<std::ptrdiff_t>(count),
                         int64_t{1}, std::multiplies<int64_t>());
}

}  // namespace

int64_t PackingBytes(const PackedCollective& collective) {
  using Kind = PackedCollective::Kind;
  const int64_t n = collective.devices;
  if (collective.kind == Kind::kRows)
    return (collective.destinations * collective.input_shape[1] *
                collective.element_bytes +
            kPartAlignment - 1) /
               kPartAlignment * kPartAlignment +
           collective.destinations * int64_t{8};
  if (n < 2 || collective.kind == Kind::kOther) return 0;
  const size_t dim = static_cast<size_t>(collective.dim);
  const int64_t input =
      Product(collective.input_shape, collective.input_shape.size()) *
      collective.element_bytes;
  const int64_t output =
      Product(collective.output_shape, collective.output_shape.size()) *
      collective.element_bytes;
  const int64_t from = collective.input_shape[dim];
  const int64_t to = collective.output_shape[dim];
  // Rows of the outermost dimension are contiguous.
  const bool outermost = Product(collective.output_shape, dim) == 1;
  const int64_t gaps = 2 * n * kPartAlignment;
  switch (collective.kind) {
    case Kind::kReduceScatter:
      return outermost && from == n * to ? 0 : n * output;
    case Kind::kAllGather:
      // A block that is not full is not contiguous in the input either.
      if (outermost) return 0;
      return output + (to < n * from ? (n - 1) * input : 0) + gaps;
    case Kind::kExchange: {
      if (outermost) return 0;
      // Members whose rows overlap one block.
      const int64_t receivers =
          collective.step == 0
              ? n - 1
              : std::min(n - 1, (from + to) / std::abs(collective.step) + 1);
      return output + receivers * input + gaps;
    }
    case Kind::kAllToAll:
      return input + output + gaps;
    case Kind::kRows:
    case Kind::kOther:
      break;
  }
  return 0;
}

}  // namespace partita::program
