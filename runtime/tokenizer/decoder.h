// The decoders of tokenizer.json: texts of tokens to text.
#ifndef PARTITA_RUNTIME_TOKENIZER_DECODER_H_
#define PARTITA_RUNTIME_TOKENIZER_DECODER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace partita::tokenizer {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // The parts of the text, to be joined.
  virtual absl::StatusOr<std::vector<std::string>> Apply(
      std::vector<std::string> tokens) const = 0;
};

// Null for a value that is null. InvalidArgument names what is wrong.
absl::StatusOr<std::unique_ptr<Decoder>> ReadDecoder(
    const nlohmann::json* value);

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_DECODER_H_
