// Each group is rounded on its own.
#include "compiler/quantize/round_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace partita::quantize {
namespace {

constexpr int kLargest = 15;  // of the integers
constexpr int kMiddle = 8;    // the zero of groups without zero points
// The largest magnitude becomes 0 with the first candidate; smaller scales cut
// it off, but leave smaller errors elsewhere.
constexpr int kCandidates = 8;
constexpr float kStep = 0.03F;

struct Grid {
  float scale = 1;
  int zero = kMiddle;

  int Round(float value) const {
    const float steps =
        std::nearbyint(value / scale) + static_cast<float>(zero);
    return static_cast<int>(
        std::clamp(steps, 0.0F, static_cast<float>(kLargest)));
  }
  double ErrorOf(float value) const {
    return static_cast<double>(Round(value) - zero) * double{scale} -
           double{value};
  }
};

double SquaresOf(const Grid& grid, const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double error = grid.ErrorOf(values[i]);
    sum += error * error;
  }
  return sum;
}

// A group of zeros, or of numbers whose scale would be 0, has a scale too.
float NotZero(float scale) { return scale != 0 ? scale : 1; }

Grid Symmetric(const float* values, int64_t count) {
  float extreme = 0;
  for (int64_t i = 0; i < count; ++i)
    if (std::abs(values[i]) > std::abs(extreme)) extreme = values[i];
  Grid best;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kCandidates; ++i) {
    Grid grid;
    grid.scale = NotZero(extreme / -static_cast<float>(kMiddle) *
                         (1 - kStep * static_cast<float>(i)));
    const double squares = SquaresOf(grid, values, count);
    if (squares < least) {
      least = squares;
      best = grid;
    }
  }
  return best;
}

Grid Asymmetric(const float* values, int64_t count) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  Grid grid;
  grid.scale = NotZero((high - low) / static_cast<float>(kLargest));
  grid.zero = static_cast<int>(std::clamp(std::nearbyint(-low / grid.scale),
                                          0.0F, static_cast<float>(kLargest)));
  return grid;
}

}  // namespace

absl::StatusOr<RoundedWeight> RoundGroups(const std::vector<float>& weight,
                                          const GroupOptions& options) {
  for (const float value : weight)
    if (!std::isfinite(value))
      return absl::InvalidArgumentError("expected finite numbers, found " +
                                        std::to_string(value));
  const auto count = static_cast<int64_t>(weight.size());
  RoundedWeight rounded;
  rounded.values.reserve(weight.size() / 2);
  for (int64_t first = 0; first < count; first += options.group) {
    const float* const values = weight.data() + first;
    const Grid grid = options.asymmetric ? Asymmetric(values, options.group)
                                         : Symmetric(values, options.group);
    rounded.scales.push_back(grid.scale);
    if (options.asymmetric)
      rounded.zeros.push_back(static_cast<int8_t>(grid.zero));
    for (int64_t i = 0; i < options.group; i += 2)
      rounded.values.push_back(static_cast<int8_t>(
          grid.Round(values[i]) | grid.Round(values[i + 1]) << 4));
    rounded.noise += SquaresOf(grid, values, options.group);
    for (int64_t i = 0; i < options.group; ++i)
      rounded.signal += double{values[i]} * double{values[i]};
  }
  return rounded;
}

std::vector<float> Permuted(const std::vector<float>& numbers,
                            const std::vector<int64_t>& shape,
                            const std::vector<int64_t>& perm) {
  std::vector<int64_t> strides(shape.size(), 1), index(shape.size(), 0);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  std::vector<float> result;
  result.reserve(numbers.size());
  int64_t place = 0;
  while (result.size() < numbers.size()) {
    result.push_back(numbers[static_cast<size_t>(place)]);
    for (size_t i = perm.size(); i-- > 0;) {
      const auto dim = static_cast<size_t>(perm[i]);
      place += strides[dim];
      if (++index[i] < shape[dim]) break;
      place -= strides[dim] * shape[dim];
      index[i] = 0;
    }
  }
  return result;
}

}  // namespace partita::quantize
