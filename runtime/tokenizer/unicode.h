// Unicode as tokenizers see it: characters of UTF-8, their properties, normal
// forms and regular expressions. Wraps ICU.
#ifndef PARTITA_RUNTIME_TOKENIZER_UNICODE_H_
#define PARTITA_RUNTIME_TOKENIZER_UNICODE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace partita::tokenizer {

// The text with U+FFFD in place of bytes that are not UTF-8. All other
// functions require UTF-8.
std::string ToValidUtf8(std::string_view bytes);

// The character at `position`, which moves behind it.
char32_t NextChar(std::string_view text, size_t& position);
void AppendChar(std::string& text, char32_t character);
// Bytes of the character that begins with this byte.
size_t CharBytes(char first);
size_t CountChars(std::string_view text);

bool IsSpace(char32_t c);        // White_Space
bool IsPunctuation(char32_t c);  // category P, or ASCII punctuation
bool IsNumber(char32_t c);       // category N
bool IsWord(char32_t c);         // as \w
bool IsMark(char32_t c);         // category M
bool IsNonspacingMark(char32_t c);
bool IsOther(char32_t c);  // control, format or private use

enum class Form { kNfc, kNfd, kNfkc, kNfkd };
std::string Normalized(const std::string& text, Form form);
// Each character in lower case, whatever its neighbours.
std::string Lowercase(const std::string& text);
// The ends, in bytes, of the text's grapheme clusters.
std::vector<size_t> GraphemeEnds(const std::string& text);

// A range of bytes, [begin, end).
using Range = std::pair<size_t, size_t>;

class Regex {
 public:
  // InvalidArgument if the pattern is not a regular expression.
  static absl::StatusOr<Regex> Compile(const std::string& pattern);
  // The matches in order. They may be empty, but not at the end of the match
  // before; an empty text has none. ResourceExhausted if the pattern needs too
  // much time or memory on this text.
  absl::StatusOr<std::vector<Range>> Matches(const std::string& text) const;

 private:
  struct Close {
    void operator()(void* regex) const;
  };
  std::unique_ptr<void, Close> regex_;
};

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_UNICODE_H_
