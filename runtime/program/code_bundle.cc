// Writes and reads code sections of GPU programs.
#include "runtime/program/code_bundle.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace partita::program {
namespace {

constexpr char kMagic[8] = {'P', 'T', 'G', 'P', 'U', 'C', '1', '\0'};
constexpr size_t kAlignment = 64;

struct Header {
  char magic[8];
  uint32_t count;
  uint32_t zero;
};
struct Piece {
  char architecture[16];  // ends with a zero byte
  uint64_t offset;
  uint64_t bytes;
};
static_assert(sizeof(Header) == 16 && sizeof(Piece) == 32);

size_t AlignUp(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the code section is damaged: ", what,
                                          "; copy or compile the model again"));
}

}  // namespace

std::string WriteCodeBundle(const CodeBundle& bundle) {
  if (bundle.machine.empty()) return std::string(bundle.portable);
  std::vector<MachineCode> pieces = {{"", bundle.portable}};
  pieces.insert(pieces.end(), bundle.machine.begin(), bundle.machine.end());
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.count = static_cast<uint32_t>(pieces.size());
  std::string section(reinterpret_cast<const char*>(&header), sizeof(header));
  size_t offset = AlignUp(sizeof(Header) + pieces.size() * sizeof(Piece));
  for (const MachineCode& code : pieces) {
    Piece piece = {};
    code.architecture.copy(piece.architecture, sizeof(piece.architecture) - 1);
    piece.offset = offset;
    piece.bytes = code.code.size();
    section.append(reinterpret_cast<const char*>(&piece), sizeof(piece));
    offset = AlignUp(offset + code.code.size());
  }
  for (const MachineCode& code : pieces) {
    section.resize(AlignUp(section.size()));
    section.append(code.code);
  }
  return section;
}

absl::StatusOr<CodeBundle> ReadCodeBundle(std::string_view section) {
  CodeBundle bundle;
  Header header;
  if (section.size() < sizeof(header) ||
      std::memcmp(section.data(), kMagic, sizeof(kMagic)) != 0) {
    bundle.portable = section;
    return bundle;
  }
  std::memcpy(&header, section.data(), sizeof(header));
  if (header.count == 0 || header.count > uint32_t{kMaxPieces})
    return Damaged(absl::StrCat("expected 1 to ", kMaxPieces,
                                " pieces inside it, found ", header.count));
  if (section.size() < sizeof(Header) + header.count * sizeof(Piece))
    return Damaged(absl::StrCat("expected a table of ", header.count,
                                " pieces, found ", section.size(), " bytes"));
  for (uint32_t i = 0; i < header.count; ++i) {
    Piece piece;
    std::memcpy(&piece, section.data() + sizeof(Header) + i * sizeof(Piece),
                sizeof(piece));
    if (piece.offset > section.size() ||
        piece.bytes > section.size() - piece.offset)
      return Damaged(absl::StrCat("piece ", i, " lies outside it"));
    const char* const end =
        std::find(piece.architecture,
                  piece.architecture + sizeof(piece.architecture), '\0');
    const std::string_view code = section.substr(piece.offset, piece.bytes);
    if (i == 0)
      bundle.portable = code;
    else
      bundle.machine.push_back(
          {std::string(static_cast<const char*>(piece.architecture), end),
           code});
  }
  return bundle;
}

}  // namespace partita::program
