// Generates texts with a model that has a cache, many at a time: when a text
// ends, the next prompt takes its row of the cache.
#ifndef PARTITA_RUNTIME_GENERATE_GENERATOR_H_
#define PARTITA_RUNTIME_GENERATE_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/generate/sampler.h"

namespace partita::generate {

// A model with a cache of rows().
class CachedModel {
 public:
  virtual ~CachedModel() = default;
  virtual int64_t rows() const = 0;        // texts in the cache
  virtual int64_t length() const = 0;      // tokens of a text in the cache
  virtual int64_t vocabulary() const = 0;  // tokens are in [0, vocabulary)
  // A model with an encoder reads the prompt there; its decoder begins with
  // this token. Absent: the text begins with the prompt.
  virtual std::optional<int64_t> start() const = 0;

  // Writes the prompt into a row of the cache. Returns the scores of the token
  // after it; they stay valid until the next call. Null with a start().
  virtual absl::StatusOr<const float*> ReadPrompt(
      int64_t row, const std::vector<int64_t>& prompt) = 0;
  // Adds a token to each row. A position of length() leaves the row unchanged.
  // Returns the scores of the tokens after them, [rows, vocabulary].
  virtual absl::StatusOr<const float*> AddTokens(
      const std::vector<int64_t>& tokens,
      const std::vector<int64_t>& positions) = 0;
};

struct GenerateOptions {
  int64_t max_new_tokens = 20;
  SamplingOptions sampling;
  std::vector<int64_t> end;  // tokens that end a text
  // Called after each new token with the new tokens of a text; returns true if
  // the text ends there, e.g. at a stop word. May be empty.
  std::function<bool(size_t text, const std::vector<int64_t>& tokens)> stops;
};

struct GenerateReport {
  std::vector<std::vector<int64_t>> tokens;  // new ones, per prompt
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  double first_token_seconds = 0;  // until the first token of the first prompt
  double prompt_seconds = 0;       // reading prompts
  double token_seconds = 0;        // all other steps
  int64_t steps = 0;               // of these
};

// InvalidArgument names a prompt that is empty, has a token outside the
// vocabulary, or does not fit the cache with its new tokens.
absl::Status CheckPrompts(const CachedModel& model,
                          const std::vector<std::vector<int64_t>>& prompts,
                          const GenerateOptions& options);

// Checks the prompts, and generates their texts.
absl::StatusOr<GenerateReport> Generate(
    CachedModel& model, const std::vector<std::vector<int64_t>>& prompts,
    const GenerateOptions& options);

}  // namespace partita::generate

#endif  // PARTITA_RUNTIME_GENERATE_GENERATOR_H_
