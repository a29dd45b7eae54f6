// Fuzzes tokenizer.json. Any text is refused with a message, or encodes and
// decodes texts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/tokenizer/tokenizer.h"

using partita::tokenizer::Tokenizer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Parse(text, "fuzz");
  if (!tokenizer.ok()) {
    if (tokenizer.status().message().empty()) abort();
    return 0;
  }
  const std::string texts[] = {"", "The  sea, it's 123 <end>",
                               "n\u00e9e\u0301 \u4f60\U0001F642\n",
                               std::string("\xff\0a", 3), text.substr(0, 64)};
  for (const std::string& each : texts) {
    const auto tokens = tokenizer->Encode(each);
    if (!tokens.ok()) continue;
    for (const int64_t token : *tokens)
      if (token < 0) abort();
    (void)tokenizer->Decode(*tokens);
  }
  (void)tokenizer->Decode({0, 1, 2, 3, -1, int64_t{1} << 40});
  return 0;
}
