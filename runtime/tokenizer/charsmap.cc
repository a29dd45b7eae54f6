// Looks up grapheme clusters, then single characters.
#include "runtime/tokenizer/charsmap.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {
namespace {

// Clusters of more bytes are replaced character by character.
constexpr size_t kLongestCluster = 5;

uint32_t OffsetOf(uint32_t unit) { return (unit >> 10) << ((unit >> 6) & 8); }

}  // namespace

absl::StatusOr<Charsmap> Charsmap::FromBase64(const std::string& text) {
  std::string bytes;
  const absl::Status wrong = absl::InvalidArgumentError(
      "normalizer.precompiled_charsmap: expected a table of SentencePiece in "
      "base64, found other bytes");
  if (!absl::Base64Unescape(text, &bytes) || bytes.size() < 4) return wrong;
  uint32_t size = 0;
  std::memcpy(&size, bytes.data(), 4);
  if (size % 4 != 0 || size == 0 || size > bytes.size() - 4) return wrong;
  Charsmap map;
  map.units_.resize(size / 4);
  std::memcpy(map.units_.data(), bytes.data() + 4, size);
  map.replacements_ = ToValidUtf8(bytes.substr(4 + size));
  if (map.replacements_.size() != bytes.size() - 4 - size) return wrong;
  return map;
}

std::optional<std::string_view> Charsmap::Find(std::string_view key) const {
  size_t node = OffsetOf(units_[0]);
  for (const char c : key) {
    const uint32_t label = static_cast<unsigned char>(c);
    node ^= label;
    if (label == 0 || node >= units_.size()) return std::nullopt;
    const uint32_t unit = units_[node];
    if ((unit & (uint32_t{1} << 31 | 0xFF)) != label) return std::nullopt;
    node ^= OffsetOf(unit);
    if (node >= units_.size()) return std::nullopt;
    if ((unit >> 8 & 1) == 0) continue;
    const size_t begin = units_[node] & ~(uint32_t{1} << 31);
    if (begin >= replacements_.size()) return std::nullopt;
    const size_t end =
        std::min(replacements_.find('\0', begin), replacements_.size());
    return std::string_view(replacements_).substr(begin, end - begin);
  }
  return std::nullopt;
}

std::string Charsmap::Apply(const std::string& text) const {
  std::string result;
  size_t begin = 0;
  for (const size_t end : GraphemeEnds(text)) {
    const std::string_view cluster(text.data() + begin, end - begin);
    begin = end;
    if (cluster.size() <= kLongestCluster) {
      if (const auto found = Find(cluster)) {
        result += *found;
        continue;
      }
    }
    for (size_t i = 0; i < cluster.size();) {
      const size_t size = std::min(CharBytes(cluster[i]), cluster.size() - i);
      const std::string_view character = cluster.substr(i, size);
      const auto found = Find(character);
      result += found ? *found : character;
      i += size;
    }
  }
  return ToValidUtf8(result);
}

}  // namespace partita::tokenizer
