// Chooses the next token of a text from the model's scores.
#ifndef PARTITA_RUNTIME_GENERATE_SAMPLER_H_
#define PARTITA_RUNTIME_GENERATE_SAMPLER_H_

#include <cstdint>
#include <vector>

namespace partita::generate {

struct SamplingOptions {
  double temperature = 0;  // 0: take the best token
  int64_t top_k = 0;       // draw among the best tokens; 0: among all
  double top_p = 1;        // draw among tokens that add up to this probability
  // Divides the positive scores of tokens that occurred, and multiplies the
  // negative ones; 1: none.
  double repetition_penalty = 1;
  uint64_t seed = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  // The token after `tokens` in text number `text`, given its scores, which are
  // changed. The penalty, temperature, top_k and top_p act in this order. Of
  // equal scores, the lowest token is best. The choice depends on the seed, the
  // text's number and its length alone, and not on other texts.
  int64_t Choose(int64_t text, const std::vector<int64_t>& tokens,
                 std::vector<float>& scores);

 private:
  int64_t Draw(const std::vector<float>& scores, double unit);

  const SamplingOptions options_;
  std::vector<int64_t> order_;  // tokens, best first
  std::vector<double> weights_;
};

}  // namespace partita::generate

#endif  // PARTITA_RUNTIME_GENERATE_SAMPLER_H_
