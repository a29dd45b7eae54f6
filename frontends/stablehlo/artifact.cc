// MLIR bytecode begins with a magic number, a version and the producer's name.
// jax.export writes a flatbuffer whose root table has the bytecode as field 13.
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

// The name after the magic number and the version, a prefixed variable-length
// integer: the count of trailing zeros of its first byte is the count of bytes
// that follow.
std::optional<std::string_view> producerOf(std::string_view bytecode) {
  if (bytecode.size() <= kMagic.size()) return std::nullopt;
  const auto first = static_cast<uint8_t>(bytecode[kMagic.size()]);
  size_t extra = 0;
  while (extra < 8 && !(first >> extra & 1)) ++extra;
  const size_t start = kMagic.size() + 1 + extra;
  const size_t end = bytecode.find('\0', start);
  if (end == std::string_view::npos) return std::nullopt;
  return bytecode.substr(start, end - start);
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
  const auto producer = producerOf(*bytecode);
  if (!producer) {
    error =
        "expected the name of the bytecode's producer, found the end of "
        "the file";
    return false;
  }
  if (producer->substr(0, 11) != "StableHLO_v") {
    error =
        "expected a portable artifact of StableHLO, found MLIR bytecode "
        "of '" +
        std::string(*producer) + "'" + kRemedy;
    return false;
  }
  artifact = {*bytecode, std::string(*producer)};
  return true;
}

}  // namespace partita::stablehlo
