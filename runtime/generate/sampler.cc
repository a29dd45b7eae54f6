// Greedy choice, or a draw among the best tokens.
#include "runtime/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/random_fill.h"

namespace partita::generate {
namespace {

// NaN is worse than all numbers, so that a choice exists.
bool IsBetter(float a, float b) {
  return std::isnan(b) ? !std::isnan(a) : a > b;
}

void Penalize(const std::vector<int64_t>& tokens, double penalty,
              std::vector<float>& scores) {
  std::vector<int64_t> seen = tokens;
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  const float factor = static_cast<float>(penalty);
  for (const int64_t token : seen) {
    if (token < 0 || token >= static_cast<int64_t>(scores.size())) continue;
    float& score = scores[static_cast<size_t>(token)];
    score = score > 0 ? score / factor : score * factor;
  }
}

int64_t Best(const std::vector<float>& scores) {
  size_t best = 0;
  for (size_t i = 1; i < scores.size(); ++i)
    if (IsBetter(scores[i], scores[best])) best = i;
  return static_cast<int64_t>(best);
}

}  // namespace

int64_t Sampler::Choose(int64_t text, const std::vector<int64_t>& tokens,
                        std::vector<float>& scores) {
  if (options_.repetition_penalty != 1)
    Penalize(tokens, options_.repetition_penalty, scores);
  if (options_.temperature == 0) return Best(scores);
  // Each text has its own stream of numbers, one per token.
  const uint64_t stream =
      base::RandomWord(options_.seed, static_cast<uint64_t>(text));
  return Draw(scores, base::RandomUnit(stream, tokens.size()));
}

int64_t Sampler::Draw(const std::vector<float>& scores, double unit) {
  const size_t count =
      options_.top_k > 0
          ? std::min(scores.size(), static_cast<size_t>(options_.top_k))
          : scores.size();
  order_.resize(scores.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto better = [&](int64_t a, int64_t b) {
    const float first = scores[static_cast<size_t>(a)],
                second = scores[static_cast<size_t>(b)];
    return IsBetter(first, second) || (!IsBetter(second, first) && a < b);
  };
  std::partial_sort(order_.begin(),
                    order_.begin() + static_cast<ptrdiff_t>(count),
                    order_.end(), better);
  weights_.resize(count);
  const double best = scores[static_cast<size_t>(order_[0])];
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const double score = scores[static_cast<size_t>(order_[i])];
    const double weight = std::exp((score - best) / options_.temperature);
    weights_[i] = std::isfinite(weight) ? weight : 0;
    sum += weights_[i];
  }
  if (sum <= 0) return order_[0];
  // The fewest best tokens whose probabilities reach top_p.
  size_t kept = count;
  double reached = 0;
  if (options_.top_p < 1) {
    for (kept = 0;
         kept < count && (kept == 0 || reached < options_.top_p * sum); ++kept)
      reached += weights_[kept];
    sum = reached;
  }
  double left = unit * sum;
  for (size_t i = 0; i < kept; ++i) {
    left -= weights_[i];
    if (left < 0) return order_[i];
  }
  return order_[kept - 1];
}

}  // namespace partita::generate
