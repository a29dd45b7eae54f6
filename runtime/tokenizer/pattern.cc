// Literal and regular patterns.
#include "runtime/tokenizer/pattern.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::tokenizer {

absl::StatusOr<Pattern> Pattern::Read(const nlohmann::json* value,
                                      const std::string& where) {
  if (value != nullptr && value->is_object() && value->size() == 1) {
    const auto entry = value->begin();
    if (entry->is_string() && entry.key() == "Regex")
      return FromRegex(entry->get<std::string>());
    if (entry->is_string() && entry.key() == "String") {
      Pattern pattern;
      pattern.literal_ = entry->get<std::string>();
      // An empty text matches where an empty expression does.
      if (pattern.literal_.empty()) return FromRegex("");
      return pattern;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      where, R"(.pattern: expected {"String": "..."} or {"Regex": "..."})"));
}

absl::StatusOr<Pattern> Pattern::FromRegex(const std::string& regex) {
  Pattern pattern;
  PARTITA_ASSIGN_OR_RETURN(pattern.regex_, Regex::Compile(regex));
  return pattern;
}

absl::StatusOr<std::vector<Range>> Pattern::Matches(
    const std::string& text) const {
  if (regex_) return regex_->Matches(text);
  std::vector<Range> matches;
  for (size_t at = text.find(literal_); at != std::string::npos;
       at = text.find(literal_, at + literal_.size()))
    matches.push_back({at, at + literal_.size()});
  return matches;
}

absl::StatusOr<std::string> Pattern::Replace(const std::string& text,
                                             const std::string& content) const {
  PARTITA_ASSIGN_OR_RETURN(const std::vector<Range> matches, Matches(text));
  std::string result;
  size_t done = 0;
  for (const auto& [begin, end] : matches) {
    result.append(text, done, begin - done);
    result += content;
    done = end;
  }
  return result.append(text, done, std::string::npos);
}

}  // namespace partita::tokenizer
