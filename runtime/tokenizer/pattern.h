// A pattern of tokenizer.json: {"String": ...} or {"Regex": ...}.
#ifndef PARTITA_RUNTIME_TOKENIZER_PATTERN_H_
#define PARTITA_RUNTIME_TOKENIZER_PATTERN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {

class Pattern {
 public:
  static absl::StatusOr<Pattern> Read(const nlohmann::json* value,
                                      const std::string& where);
  static absl::StatusOr<Pattern> FromRegex(const std::string& regex);

  // Matches in order, as Regex::Matches gives them.
  absl::StatusOr<std::vector<Range>> Matches(const std::string& text) const;
  absl::StatusOr<std::string> Replace(const std::string& text,
                                      const std::string& content) const;

 private:
  std::string literal_;
  std::optional<Regex> regex_;
};

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_PATTERN_H_
