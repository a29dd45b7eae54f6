// GPT-2's printable characters for bytes (Radford et al., 2019): a byte that is
// a printable character of Latin-1 stands for itself, the others for characters
// from U+0100 on.
#ifndef PARTITA_RUNTIME_TOKENIZER_BYTE_LEVEL_H_
#define PARTITA_RUNTIME_TOKENIZER_BYTE_LEVEL_H_

#include <string>
#include <string_view>

namespace partita::tokenizer {

// Each byte as its character.
std::string BytesAsChars(std::string_view bytes);
// The bytes of the characters. If a character stands for no byte, the bytes of
// `text` itself.
std::string CharsAsBytes(const std::string& text);

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_BYTE_LEVEL_H_
