// Frequencies, tables of angles, rotations.
#include "frontends/huggingface/rotary.h"

#include <algorithm>
#include <cmath>

namespace partita::huggingface {
namespace {

constexpr int64_t kMaxSize = 8192;

// The frequencies as a config describes them. Its keys are in the section
// `rope`, but for older thetas.
struct RopeConfig {
  RopeConfig(Config& rope, Config& config, double default_theta,
             int64_t positions)
      : theta(rope.number("rope_theta",
                          config.number("rope_theta", default_theta))),
        type(rope.text("rope_type", rope.text("type", "default"))),
        factor(rope.number("factor", 1.0)),
        low(rope.number("low_freq_factor", 1.0)),
        high(rope.number("high_freq_factor", 4.0)),
        fast(rope.number("beta_fast", 32.0)),
        slow(rope.number("beta_slow", 1.0)),
        original(rope.number("original_max_position_embeddings",
                             static_cast<double>(positions))),
        amplitude(rope.number("mscale", 0.0)),
        score_amplitude(rope.number("mscale_all_dim", 0.0)),
        truncate(rope.flag("truncate", true)) {
    rope.expectOneOf("rope_type", type,
                     {"default", "linear", "llama3", "yarn"});
    if (theta <= 0.0) rope.complain("'rope_theta': expected a positive number");
    if (factor <= 0.0 || (type != "default" && !rope.has("factor")))
      rope.complain("'rope_scaling.factor': expected a positive number");
    if (type == "llama3" && (low <= 0.0 || high <= low))
      rope.complain(
          "'rope_scaling': expected 0 < low_freq_factor < high_freq_factor");
    if (type == "yarn" &&
        (slow <= 0.0 || fast < slow || original <= 0.0 || theta == 1.0))
      rope.complain(
          "'rope_scaling': expected 0 < beta_slow <= beta_fast, a positive "
          "original_max_position_embeddings and another rope_theta than 1");
  }

  double theta;
  std::string type;
  double factor, low, high, fast, slow, original, amplitude, score_amplitude;
  bool truncate;
};

// The waves of llama3: 0 for those that fit fewer than `low` times into the
// original context, 1 for at least `high` times, linear in between.
double keptByLlama3(const RopeConfig& rope, double frequency) {
  const double waves = rope.original * frequency / (2.0 * M_PI);
  return std::clamp((waves - rope.low) / (rope.high - rope.low), 0.0, 1.0);
}

// YaRN (Peng et al., 2023) keeps the pairs of the fast waves and stretches
// those of the slow ones; in between it is linear in the pair.
double keptByYarn(const RopeConfig& rope, int64_t pair, int64_t size) {
  const auto pairOf = [&](double rotations) {
    return static_cast<double>(size) *
           std::log(rope.original / (rotations * 2.0 * M_PI)) /
           (2.0 * std::log(rope.theta));
  };
  double first = pairOf(rope.fast), last = pairOf(rope.slow);
  if (rope.truncate) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(size - 1));
  if (first == last) last += 0.001;
  return 1.0 - std::clamp((static_cast<double>(pair) - first) / (last - first),
                          0.0, 1.0);
}

// YaRN's correction of the scores' temperature.
double temperature(double factor, double weight) {
  return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

}  // namespace

Rotary readRotary(Config& config, const char* key, int64_t size, double theta,
                  int64_t positions) {
  Rotary rotary;
  if (size % 2 != 0 || size > kMaxSize) {
    config.complain(
        "'" + std::string(key) + "': expected an even number of at most " +
        std::to_string(kMaxSize) + ", found " + std::to_string(size));
    return rotary;
  }
  rotary.size = size;
  static const nlohmann::json kNone = nlohmann::json::object();
  const nlohmann::json& values = config.values();
  // Newer configs have theta in the same section as the scaling.
  const char* section =
      config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const bool scaled = config.has(section) && values[section].is_object();
  Config section_config(scaled ? values[section] : kNone, config.loc(),
                        std::string(section) + ".");
  const RopeConfig rope(section_config, config, theta, positions);
  if (rope.type == "yarn") {
    const double given =
        rope.amplitude != 0.0 && rope.score_amplitude != 0.0
            ? temperature(rope.factor, rope.amplitude) /
                  temperature(rope.factor, rope.score_amplitude)
            : temperature(rope.factor, 1.0);
    rotary.amplitude = section_config.number("attention_factor", given);
    if (rope.score_amplitude != 0.0)
      rotary.score_scale =
          std::pow(temperature(rope.factor, rope.score_amplitude), 2.0);
  }
  config.absorb(section_config);
  for (int64_t i = 0; i < size / 2; ++i) {
    double frequency = std::pow(
        rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(size));
    const double kept = rope.type == "llama3"   ? keptByLlama3(rope, frequency)
                        : rope.type == "yarn"   ? keptByYarn(rope, i, size)
                        : rope.type == "linear" ? 0.0
                                                : 1.0;
    frequency *= kept + (1.0 - kept) / rope.factor;
    rotary.frequencies.push_back(static_cast<float>(frequency));
  }
  return rotary;
}

// They are tables, because the vectorised f32 functions lose the angle of far
// positions.
Value angles(ModelBuilder& m, int64_t length, const Rotary& rotary,
             float (*function)(float)) {
  std::vector<float> values;
  for (int64_t position = 0; position < length; ++position)
    for (const float frequency : rotary.frequencies)
      values.push_back(static_cast<float>(rotary.amplitude) *
                       function(static_cast<float>(position) * frequency));
  return m.floats({length, rotary.size / 2}, values);
}

Value rotate(Builder& b, Value x, Value cosine, Value sine, bool interleaved) {
  const Shape shape(b.shapeOf(x));
  const int64_t half = shape[3] / 2;
  Value first, second;
  if (interleaved) {
    const Value pairs = b.reshape(x, {shape[0], shape[1], shape[2], half, 2});
    const auto side = [&](int64_t i) {
      return b.reshape(b.slice(pairs, 4, i, 1),
                       {shape[0], shape[1], shape[2], half});
    };
    first = side(0), second = side(1);
  } else {
    first = b.slice(x, 3, 0, half), second = b.slice(x, 3, half, half);
  }
  const Shape part(b.shapeOf(first));
  // Angles are [L, size / 2], or [B, L, size / 2] if rows differ.
  const Shape dims = b.rankOf(cosine) == 3 ? Shape{0, 2, 3} : Shape{2, 3};
  const Value cos = b.broadcast(cosine, part, dims),
              sin = b.broadcast(sine, part, dims);
  const Value low = b.sub(b.mul(first, cos), b.mul(second, sin));
  const Value high = b.add(b.mul(second, cos), b.mul(first, sin));
  return b.concat({low, high}, 3);
}

}  // namespace partita::huggingface
