// Two passes over the weight: largest magnitudes, then bytes.
#include "compiler/quantize/round_weight.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/base/dtype.h"

namespace partita::quantize {
namespace {

constexpr float kLargestInteger = 127, kLargestE4M3 = 448;

// The byte of a number of steps, and the number that it stands for.
struct Step {
  int8_t byte;
  float steps;
};

Step RoundStep(float steps, ByteFormat format) {
  if (format == ByteFormat::kE4M3) {
    const uint8_t bits =
        base::FloatToFloat8E4M3(std::clamp(steps, -kLargestE4M3, kLargestE4M3));
    return {static_cast<int8_t>(bits), base::Float8E4M3ToFloat(bits)};
  }
  const float whole =
      std::clamp(std::nearbyint(steps), -kLargestInteger, kLargestInteger);
  return {static_cast<int8_t>(whole), whole};
}

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

absl::StatusOr<RoundedWeight> RoundWeight(const std::vector<float>& weight,
                                          const std::vector<int64_t>& shape,
                                          const std::vector<int64_t>& channels,
                                          ByteFormat format) {
  const float most =
      format == ByteFormat::kE4M3 ? kLargestE4M3 : kLargestInteger;
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
    scale = scale / most > 0 ? scale / most : 1;
  Channels second(shape, channels);
  rounded.values.reserve(weight.size());
  for (const float value : weight) {
    const float scale = rounded.scales[static_cast<size_t>(second.current())];
    const Step step = RoundStep(value / scale, format);
    rounded.values.push_back(step.byte);
    const double error = double{step.steps} * double{scale} - double{value};
    rounded.noise += error * error;
    rounded.signal += double{value} * double{value};
    second.Next();
  }
  return rounded;
}

}  // namespace partita::quantize
