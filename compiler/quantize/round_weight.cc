// Two passes over the weight: largest magnitudes, then integers.
#include "compiler/quantize/round_weight.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace partita::quantize {
namespace {

constexpr float kLargest = 127;

// The channel of each element, in order, by counting like an odometer.
class Channels {
 public:
  Channels(const std::vector<int64_t>& shape,
           const std::vector<int64_t>& channels)
      : shape_(shape), strides_(shape.size(), 0), index_(shape.size(), 0) {
    for (size_t i = channels.size(); i-- > 0;) {
      const auto dim = static_cast<size_t>(channels[i]);
      strides_[dim] = count_;
      count_ *= shape[dim];
    }
  }

  int64_t count() const { return count_; }
  int64_t current() const { return current_; }
  void Next() {
    for (size_t dim = shape_.size(); dim-- > 0;) {
      current_ += strides_[dim];
      if (++index_[dim] < shape_[dim]) return;
      current_ -= strides_[dim] * shape_[dim];
      index_[dim] = 0;
    }
  }

 private:
  const std::vector<int64_t>& shape_;
  std::vector<int64_t> strides_, index_;
  int64_t count_ = 1, current_ = 0;
};

}  // namespace

double RoundedWeight::Decibels() const {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

absl::StatusOr<RoundedWeight> RoundWeight(
    const std::vector<float>& weight, const std::vector<int64_t>& shape,
    const std::vector<int64_t>& channels) {
  RoundedWeight rounded;
  Channels first(shape, channels);
  rounded.scales.assign(static_cast<size_t>(first.count()), 0);
  for (const float value : weight) {
    if (!std::isfinite(value))
      return absl::InvalidArgumentError("expected finite numbers, found " +
                                        std::to_string(value));
    float& largest = rounded.scales[static_cast<size_t>(first.current())];
    largest = std::max(largest, std::abs(value));
    first.Next();
  }
  // A channel of zeros, or of numbers whose scale would be 0, has a scale too.
  for (float& scale : rounded.scales)
    scale = scale / kLargest > 0 ? scale / kLargest : 1;
  Channels second(shape, channels);
  rounded.values.reserve(weight.size());
  for (const float value : weight) {
    const float scale = rounded.scales[static_cast<size_t>(second.current())];
    const float steps =
        std::clamp(std::nearbyint(value / scale), -kLargest, kLargest);
    rounded.values.push_back(static_cast<int8_t>(steps));
    const double error = double{steps} * double{scale} - double{value};
    rounded.noise += error * error;
    rounded.signal += double{value} * double{value};
    second.Next();
  }
  return rounded;
}

}  // namespace partita::quantize
