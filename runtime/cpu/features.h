// Instruction sets of this machine.
#ifndef PARTITA_RUNTIME_CPU_FEATURES_H_
#define PARTITA_RUNTIME_CPU_FEATURES_H_

#include <set>
#include <string>

#include "absl/status/status.h"

namespace partita::cpu {

// The processor's flags as Linux names them ("avx512_vnni").
std::set<std::string> HostFlags();

// FailedPrecondition naming every feature of `features` ("+avx2,+fma,-sse4a",
// LLVM's spelling) that `flags` lacks. Features that no generated code uses
// (system instructions) are not looked at.
absl::Status CheckFeatures(const std::string& features,
                           const std::set<std::string>& flags);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_FEATURES_H_
