// Writes the header that ParseSafetensors reads.
#include "runtime/base/write_safetensors.h"

#include <nlohmann/json.hpp>

namespace partita::base {

std::string SafetensorsStart(const std::vector<SafetensorsPart>& parts) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t offset = 0;
  for (const SafetensorsPart& part : parts) {
    header[part.name] = {
        {"dtype", part.entry->stored},
        {"shape", part.entry->shape},
        {"data_offsets", {offset, offset + part.entry->bytes}}};
    offset += part.entry->bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8)
    bytes.push_back(static_cast<char>(uint64_t{text.size()} >> shift & 255));
  return bytes + text;
}

std::string StoredName(DType dtype) {
  if (dtype == DType::kI1) return "BOOL";
  if (dtype == DType::kF8E4M3) return "F8_E4M3";
  if (dtype == DType::kF8E5M2) return "F8_E5M2";
  std::string name = NameOf(dtype);
  for (char& letter : name)
    if (letter >= 'a' && letter <= 'z')
      letter = static_cast<char>(letter - 'a' + 'A');
  return name;
}

}  // namespace partita::base
