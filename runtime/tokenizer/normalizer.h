// The normalizers of tokenizer.json: text to text.
#ifndef PARTITA_RUNTIME_TOKENIZER_NORMALIZER_H_
#define PARTITA_RUNTIME_TOKENIZER_NORMALIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace partita::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual absl::StatusOr<std::string> Apply(const std::string& text) const = 0;
};

// Null for a value that is null. InvalidArgument names what is wrong.
absl::StatusOr<std::unique_ptr<Normalizer>> ReadNormalizer(
    const nlohmann::json* value);

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_NORMALIZER_H_
