// Two tables of 256 bytes.
#include "runtime/tokenizer/byte_level.h"

#include <array>
#include <map>

#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {
namespace {

struct Tables {
  std::array<std::string, 256> chars;
  std::map<char32_t, char> bytes;

  Tables() {
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool prints = (byte >= '!' && byte <= '~') ||
                          (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const char32_t c = prints ? static_cast<char32_t>(byte) : next++;
      AppendChar(chars[static_cast<size_t>(byte)], c);
      bytes[c] = static_cast<char>(byte);
    }
  }
};

const Tables& TheTables() {
  static const Tables* const kTables = new Tables();
  return *kTables;
}

}  // namespace

std::string BytesAsChars(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    text += TheTables().chars[static_cast<unsigned char>(byte)];
  return text;
}

std::string CharsAsBytes(const std::string& text) {
  std::string bytes;
  for (size_t position = 0; position < text.size();) {
    const auto found = TheTables().bytes.find(NextChar(text, position));
    if (found == TheTables().bytes.end()) return text;
    bytes += found->second;
  }
  return bytes;
}

}  // namespace partita::tokenizer
