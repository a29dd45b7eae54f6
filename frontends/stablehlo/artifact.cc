// MLIR bytecode is a magic number, a version, the producer's name, and
// sections. jax.export writes a flatbuffer whose root table has the bytecode as
// field 13.
#include "frontends/stablehlo/artifact.h"

#include <cstdint>
#include <cstring>
#include <optional>

namespace partita::stablehlo {
namespace {

constexpr std::string_view kMagic = "ML\xefR";
constexpr uint64_t kModuleField = 13;

bool isBytecode(std::string_view bytes) {
  return bytes.substr(0, kMagic.size()) == kMagic;
}

// A little-endian number at `at`.
template <typename T>
std::optional<T> numberAt(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// The bytes of a vector of bytes: field `field` of the root table.
std::optional<std::string_view> rootField(std::string_view file,
                                          uint64_t field) {
  const auto root = numberAt<uint32_t>(file, 0);
  if (!root) return std::nullopt;
  const auto to_layout = numberAt<int32_t>(file, *root);
  if (!to_layout) return std::nullopt;
  const int64_t layout = static_cast<int64_t>(*root) - *to_layout;
  if (layout < 0) return std::nullopt;
  const auto layout_bytes = numberAt<uint16_t>(file, layout);
  const uint64_t slot = 4 + 2 * field;
  if (!layout_bytes || slot + 2 > *layout_bytes) return std::nullopt;
  const auto offset = numberAt<uint16_t>(file, layout + slot);
  if (!offset || *offset == 0) return std::nullopt;
  const uint64_t place = uint64_t{*root} + *offset;
  const auto to_vector = numberAt<uint32_t>(file, place);
  if (!to_vector) return std::nullopt;
  const uint64_t vector = place + *to_vector;
  const auto size = numberAt<uint32_t>(file, vector);
  if (!size || file.size() - vector - 4 < *size) return std::nullopt;
  return file.substr(vector + 4, *size);
}

// Bytecode of a file, or nothing.
std::optional<std::string_view> bytecodeOf(std::string_view file) {
  if (isBytecode(file)) return file;
  const auto field = rootField(file, kModuleField);
  if (field && isBytecode(*field)) return field;
  return std::nullopt;
}

// Reads bytecode from the start. After the end, numbers are 0 and `fine` is
// false.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  bool fine = true;
  bool atEnd() const { return at_ == bytes_.size(); }

  uint8_t byte() {
    if (at_ < bytes_.size()) return static_cast<uint8_t>(bytes_[at_++]);
    fine = false;
    return 0;
  }
  // The count of trailing zeros of the first byte is the count of bytes that
  // follow.
  uint64_t number() {
    const uint8_t first = byte();
    int extra = 0;
    while (extra < 8 && !(first >> extra & 1)) ++extra;
    uint64_t value = extra == 8 ? 0 : first >> (extra + 1);
    for (int i = 0; i < extra; ++i) {
      const int shift = extra == 8 ? 8 * i : 8 * (i + 1) - (extra + 1);
      value |= static_cast<uint64_t>(byte()) << shift;
    }
    return value;
  }
  // The bytes before the next zero, which is skipped.
  std::string_view text() {
    const size_t end = bytes_.find('\0', at_);
    fine = fine && end != std::string_view::npos;
    if (!fine) return {};
    const size_t start = at_;
    at_ = end + 1;
    return bytes_.substr(start, end - start);
  }
  std::string_view take(uint64_t size) {
    fine = fine && size <= bytes_.size() - at_;
    if (!fine) return {};
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  void align(uint64_t alignment) {
    while (fine && alignment > 1 && at_ % alignment != 0) byte();
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

// The groups of the section of offsets of attributes and types hold as many
// entries as it says. MLIR's reader writes beyond its tables if they do not.
bool hasOffsetsOfAllEntries(std::string_view section) {
  Cursor cursor(section);
  const uint64_t attributes = cursor.number(), types = cursor.number();
  for (const uint64_t expected : {attributes, types}) {
    uint64_t found = 0;
    while (cursor.fine && found < expected) {
      cursor.number();  // dialect
      const uint64_t entries = cursor.number();
      if (entries > expected - found) return false;
      found += entries;
      for (uint64_t i = 0; i < entries && cursor.fine; ++i) cursor.number();
      if (entries == 0) return false;
    }
  }
  return cursor.fine;
}

// Reads the header up to the producer's name, and checks the sections.
bool checkSections(std::string_view bytecode, std::string& producer) {
  constexpr uint8_t kOffsets = 3, kIsAligned = 0x80;
  Cursor cursor(bytecode);
  cursor.take(kMagic.size());
  cursor.number();  // version
  producer = std::string(cursor.text());
  while (cursor.fine && !cursor.atEnd()) {
    const uint8_t id = cursor.byte();
    const uint64_t size = cursor.number();
    if (id & kIsAligned) cursor.align(cursor.number());
    const std::string_view section = cursor.take(size);
    if ((id & ~kIsAligned) == kOffsets && !hasOffsetsOfAllEntries(section))
      return false;
  }
  return cursor.fine;
}

}  // namespace

bool looksLikeArtifact(std::string_view file) {
  return bytecodeOf(file).has_value();
}

bool findArtifact(std::string_view file, Artifact& artifact,
                  std::string& error) {
  constexpr char kRemedy[] =
      "; write jax.export.export(jitted)(*args).mlir_module_serialized, or "
      "what its serialize() returns";
  const auto bytecode = bytecodeOf(file);
  if (!bytecode) {
    error = std::string(
                "expected MLIR bytecode, or a file of jax.export, found "
                "neither") +
            kRemedy;
    return false;
  }
  std::string producer;
  const bool is_whole = checkSections(*bytecode, producer);
  if (producer.empty()) {
    error =
        "expected the name of the bytecode's producer, found the end of the "
        "file";
    return false;
  }
  if (producer.substr(0, 11) != "StableHLO_v") {
    error =
        "expected a portable artifact of StableHLO, found MLIR bytecode of '" +
        producer + "'" + kRemedy;
    return false;
  }
  if (!is_whole) {
    error = "expected the whole of a portable artifact (" + producer +
            "), found one that is damaged or cut off";
    return false;
  }
  artifact = {*bytecode, producer};
  return true;
}

}  // namespace partita::stablehlo
