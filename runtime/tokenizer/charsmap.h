// SentencePiece's table of replacements: a double-array trie (Aoe, 1989) from
// strings to positions in a text of replacements.
#ifndef PARTITA_RUNTIME_TOKENIZER_CHARSMAP_H_
#define PARTITA_RUNTIME_TOKENIZER_CHARSMAP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::tokenizer {

// Bytes of the table: the size of the trie in bytes (u32), its units (u32
// each), and the replacements, each of which ends with a byte 0. Little-endian.
class Charsmap {
 public:
  // InvalidArgument if the base64 text is not such a table.
  static absl::StatusOr<Charsmap> FromBase64(const std::string& text);

  std::string Apply(const std::string& text) const;

 private:
  // The replacement of the shortest known prefix of `key`.
  std::optional<std::string_view> Find(std::string_view key) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_CHARSMAP_H_
