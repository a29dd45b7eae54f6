// Names of targets: what the code of a program runs on.
#ifndef PARTITA_RUNTIME_PROGRAM_TARGET_H_
#define PARTITA_RUNTIME_PROGRAM_TARGET_H_

#include <optional>
#include <string>
#include <string_view>

namespace partita::program {

// Kinds of targets that come with Partita.
inline constexpr char kCpuTarget[] = "cpu";
inline constexpr char kCudaTarget[] = "cuda";

// "cuda:sm_90a" has the kind "cuda" and the architecture "sm_90a". "cpu" has
// the kind "cpu" and no architecture.
struct Target {
  std::string kind;
  std::string architecture;  // empty: none
};

// Parses KIND or KIND:ARCHITECTURE. A kind consists of lower-case letters,
// digits and '_', and begins with a letter; an architecture consists of
// letters, digits, '_', '-', '+' and '.'. Returns nothing if `text` has another
// form. The kind may be unknown: the compiler's and the runtime's tables
// (compiler/driver/targets.h, runtime/session/devices.h) list the known ones.
std::optional<Target> ParseTarget(std::string_view text);

// The text that ParseTarget parses.
std::string TargetText(const Target& target);

// True if code for the target is GPU kernels: launches have grids and blocks,
// and their scratch is device memory. An unknown kind is no GPU.
bool IsGpu(const Target& target);
// The same for a target's text. False if it does not parse.
bool IsGpuTarget(std::string_view text);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_TARGET_H_
