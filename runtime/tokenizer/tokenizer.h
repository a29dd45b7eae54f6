// Converts text to tokens and back, as a tokenizer.json of Hugging Face's
// tokenizers describes it.
#ifndef PARTITA_RUNTIME_TOKENIZER_TOKENIZER_H_
#define PARTITA_RUNTIME_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::tokenizer {

// Used by one thread at a time.
class Tokenizer {
 public:
  // NotFound if there is no such file; InvalidArgument, with the path, names
  // what is wrong in it.
  static absl::StatusOr<Tokenizer> Open(const std::string& path);
  // From the text of such a file; `path` is used in messages.
  static absl::StatusOr<Tokenizer> Parse(std::string_view text,
                                         const std::string& path);
  Tokenizer(Tokenizer&& other) noexcept;
  ~Tokenizer();

  // The tokens of a text. With `adds_special`, the tokenizer's own template
  // adds tokens around them, e.g. [CLS]. InvalidArgument if the text has a
  // character without a token.
  absl::StatusOr<std::vector<int64_t>> Encode(std::string_view text,
                                              bool adds_special = true) const;
  // The text of tokens; ids without a token are left out, and so are special
  // tokens with `skips_special`.
  absl::StatusOr<std::string> Decode(const std::vector<int64_t>& tokens,
                                     bool skips_special = true) const;
  // One more than the largest id.
  int64_t size() const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_TOKENIZER_H_
