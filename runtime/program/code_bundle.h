// The code section of a program for GPUs that has machine code beside its
// portable code:
//
//   char    magic[8]   "PTGPUC1\0"
//   uint32  count      of pieces, at most kMaxPieces
//   uint32  0
//   pieces, each       {char architecture[16]; uint64 offset; uint64 bytes}
//   their content, in order, each at a multiple of 64
//
// The first piece is the portable code and has no architecture. Numbers are
// little endian. A section that does not begin with the magic is portable code
// only.
#ifndef PARTITA_RUNTIME_PROGRAM_CODE_BUNDLE_H_
#define PARTITA_RUNTIME_PROGRAM_CODE_BUNDLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::program {

// Machine code of one architecture, such as "sm_90a".
struct MachineCode {
  std::string architecture;
  std::string_view code;
};

struct CodeBundle {
  std::string_view portable;  // PTX; each GPU's driver compiles it
  std::vector<MachineCode> machine;
};

// Makes a code section. Architectures have 1 to 15 characters and there are
// fewer than kMaxPieces; portable code is not empty. Without machine code the
// section is the portable code itself.
std::string WriteCodeBundle(const CodeBundle& bundle);

// Reads a code section, which must outlive the result. DataLoss if a piece lies
// outside the section.
absl::StatusOr<CodeBundle> ReadCodeBundle(std::string_view section);

inline constexpr int kMaxPieces = 64;

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_CODE_BUNDLE_H_
