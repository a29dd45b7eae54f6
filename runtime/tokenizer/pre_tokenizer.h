// The pre-tokenizers of tokenizer.json: text to pieces within which tokens are
// found.
#ifndef PARTITA_RUNTIME_TOKENIZER_PRE_TOKENIZER_H_
#define PARTITA_RUNTIME_TOKENIZER_PRE_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace partita::tokenizer {

struct Piece {
  std::string text;
  bool first = false;  // at the beginning of the whole text
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Pieces without characters are dropped.
  virtual absl::StatusOr<std::vector<Piece>> Split(
      std::vector<Piece> pieces) const = 0;
};

// Null for a value that is null. InvalidArgument names what is wrong.
absl::StatusOr<std::unique_ptr<PreTokenizer>> ReadPreTokenizer(
    const nlohmann::json* value);

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_PRE_TOKENIZER_H_
