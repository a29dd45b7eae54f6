// ICU works on UTF-16; a table maps its positions to bytes of UTF-8.
#include "runtime/tokenizer/unicode.h"

#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uregex.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace partita::tokenizer {
namespace {

// Steps of ICU's matcher for one text, in its own units of about a millisecond.
constexpr int32_t kTimeLimit = 10000;
constexpr int32_t kStackLimit = 32 << 20;
// Tokenizers' ^ and $ match at each line, and only \n ends one.
constexpr uint32_t kRegexFlags = UREGEX_MULTILINE | UREGEX_UNIX_LINES;

struct Utf16 {
  std::u16string text;
  std::vector<size_t> bytes;  // of each unit's character; and of the end
};

Utf16 ToUtf16(std::string_view text, bool with_positions) {
  Utf16 result;
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    const UChar32 c = static_cast<UChar32>(NextChar(text, position));
    if (c > 0xFFFF) {
      result.text += static_cast<char16_t>(U16_LEAD(c));
      result.text += static_cast<char16_t>(U16_TRAIL(c));
    } else {
      result.text += static_cast<char16_t>(c);
    }
    while (with_positions && result.bytes.size() < result.text.size())
      result.bytes.push_back(begin);
  }
  result.bytes.push_back(text.size());
  return result;
}

std::string ToUtf8(const std::u16string& text) {
  std::string result;
  const int32_t size = static_cast<int32_t>(text.size());
  for (int32_t i = 0; i < size;) {
    UChar32 c;
    U16_NEXT(text.data(), i, size, c);
    AppendChar(result, static_cast<char32_t>(c));
  }
  return result;
}

uint32_t CategoryMask(char32_t c) {
  return U_GET_GC_MASK(static_cast<UChar32>(c));
}

// The category by Unicode 8, whose tables tokenizers use for marks and for
// punctuation: later characters have none.
uint32_t OldCategoryMask(char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] > 8 ? 0 : CategoryMask(c);
}

// Rewrites parts of tokenizers' expressions that ICU reads otherwise: \s counts
// vertical tabs and next-line as space, ^ does not match after a last \n, and
// \Z ignores no other end of a line.
std::string ToIcu(const std::string& pattern) {
  std::string result;
  int depth = 0;  // of sets, [...]
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's')
        result += "\\p{White_Space}";
      else if (next == 'S')
        result += "\\P{White_Space}";
      else if (next == 'Z' && depth == 0)
        result += "(?=\\n?\\z)";
      else
        result.append({'\\', next});
      continue;
    }
    depth = c == '[' ? depth + 1 : c == ']' && depth > 0 ? depth - 1 : depth;
    if (c == '^' && depth == 0)
      result += "(?:^(?!\\z))";
    else
      result += c;
  }
  return result;
}

}  // namespace

std::string ToValidUtf8(std::string_view bytes) {
  std::string text;
  const uint8_t* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const size_t size = bytes.size();
  for (size_t i = 0; i < size;) {
    UChar32 c;
    U8_NEXT(data, i, size, c);
    AppendChar(text, c < 0 ? U'\uFFFD' : static_cast<char32_t>(c));
  }
  return text;
}

char32_t NextChar(std::string_view text, size_t& position) {
  const uint8_t* data = reinterpret_cast<const uint8_t*>(text.data());
  UChar32 c;
  U8_NEXT(data, position, text.size(), c);
  return c < 0 ? U'\uFFFD' : static_cast<char32_t>(c);
}

void AppendChar(std::string& text, char32_t character) {
  char bytes[U8_MAX_LENGTH];
  int size = 0;
  UBool failed = false;
  U8_APPEND(reinterpret_cast<uint8_t*>(bytes), size, U8_MAX_LENGTH,
            static_cast<UChar32>(character), failed);
  if (failed) return AppendChar(text, U'\uFFFD');
  text.append(bytes, static_cast<size_t>(size));
}

size_t CharBytes(char first) {
  const unsigned char c = static_cast<unsigned char>(first);
  return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

size_t CountChars(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool IsSpace(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_WHITE_SPACE);
}
bool IsPunctuation(char32_t c) {
  const bool is_ascii = (c > 32 && c < 48) || (c > 57 && c < 65) ||
                        (c > 90 && c < 97) || (c > 122 && c < 127);
  return is_ascii || (OldCategoryMask(c) & U_GC_P_MASK) != 0;
}
bool IsNumber(char32_t c) { return (CategoryMask(c) & U_GC_N_MASK) != 0; }
bool IsWord(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_ALPHABETIC) ||
         u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_JOIN_CONTROL) ||
         (CategoryMask(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}
bool IsMark(char32_t c) { return (OldCategoryMask(c) & U_GC_M_MASK) != 0; }
bool IsNonspacingMark(char32_t c) {
  return (OldCategoryMask(c) & U_GC_MN_MASK) != 0;
}
bool IsOther(char32_t c) {
  return (OldCategoryMask(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) !=
         0;
}

std::string Normalized(const std::string& text, Form form) {
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* normalizer =
      form == Form::kNfc    ? unorm2_getNFCInstance(&error)
      : form == Form::kNfd  ? unorm2_getNFDInstance(&error)
      : form == Form::kNfkc ? unorm2_getNFKCInstance(&error)
                            : unorm2_getNFKDInstance(&error);
  if (U_FAILURE(error)) return text;
  const std::u16string source = ToUtf16(text, false).text;
  const int32_t size = static_cast<int32_t>(source.size());
  std::u16string result(source.size() + 16, u'\0');
  for (int attempt = 0; attempt < 2; ++attempt) {
    error = U_ZERO_ERROR;
    const int32_t needed =
        unorm2_normalize(normalizer, source.data(), size, result.data(),
                         static_cast<int32_t>(result.size()), &error);
    result.resize(static_cast<size_t>(needed));
    if (error != U_BUFFER_OVERFLOW_ERROR) break;
  }
  return U_FAILURE(error) ? text : ToUtf8(result);
}

std::string Lowercase(const std::string& text) {
  std::string result;
  for (size_t position = 0; position < text.size();) {
    const char32_t c = NextChar(text, position);
    // The only character whose lower case is two characters.
    if (c == U'\u0130')
      result += "i\u0307";
    else
      AppendChar(result,
                 static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
  }
  return result;
}

std::vector<size_t> GraphemeEnds(const std::string& text) {
  const Utf16 source = ToUtf16(text, true);
  std::vector<size_t> ends;
  UErrorCode error = U_ZERO_ERROR;
  UBreakIterator* breaks =
      ubrk_open(UBRK_CHARACTER, "", source.text.data(),
                static_cast<int32_t>(source.text.size()), &error);
  if (U_SUCCESS(error)) {
    ubrk_first(breaks);
    for (int32_t end = ubrk_next(breaks); end != UBRK_DONE;
         end = ubrk_next(breaks))
      ends.push_back(source.bytes[static_cast<size_t>(end)]);
  }
  if (breaks != nullptr) ubrk_close(breaks);
  if (ends.empty() && !text.empty()) ends.push_back(text.size());
  return ends;
}

void Regex::Close::operator()(void* regex) const {
  uregex_close(static_cast<URegularExpression*>(regex));
}

absl::StatusOr<Regex> Regex::Compile(const std::string& pattern) {
  // ICU refuses a pattern without characters.
  const std::u16string source =
      ToUtf16(pattern.empty() ? "(?:)" : ToIcu(pattern), false).text;
  UErrorCode error = U_ZERO_ERROR;
  UParseError where = {};
  URegularExpression* compiled =
      uregex_open(source.data(), static_cast<int32_t>(source.size()),
                  kRegexFlags, &where, &error);
  if (U_FAILURE(error))
    return absl::InvalidArgumentError(
        absl::StrCat("expected a regular expression, found '", pattern, "' (",
                     u_errorName(error), ")"));
  Regex regex;
  regex.regex_.reset(compiled);
  uregex_setTimeLimit(compiled, kTimeLimit, &error);
  uregex_setStackLimit(compiled, kStackLimit, &error);
  return regex;
}

absl::StatusOr<std::vector<Range>> Regex::Matches(
    const std::string& text) const {
  std::vector<Range> matches;
  if (text.empty()) return matches;
  const Utf16 source = ToUtf16(text, true);
  URegularExpression* regex = static_cast<URegularExpression*>(regex_.get());
  UErrorCode error = U_ZERO_ERROR;
  uregex_setText(regex, source.text.data(),
                 static_cast<int32_t>(source.text.size()), &error);
  while (U_SUCCESS(error) && uregex_findNext(regex, &error)) {
    const size_t
        begin =
            source.bytes[static_cast<size_t>(uregex_start(regex, 0, &error))],
        end = source.bytes[static_cast<size_t>(uregex_end(regex, 0, &error))];
    const bool follows = !matches.empty() && matches.back().second == end;
    if (begin < end || !follows) matches.push_back({begin, end});
  }
  if (U_FAILURE(error))
    return absl::ResourceExhaustedError(absl::StrCat(
        "a regular expression of the tokenizer fails on a text of ",
        text.size(), " bytes (", u_errorName(error), ")"));
  return matches;
}

}  // namespace partita::tokenizer
