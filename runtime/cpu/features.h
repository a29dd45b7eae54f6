// Instruction sets of this machine.
#ifndef PARTITA_RUNTIME_CPU_FEATURES_H_
#define PARTITA_RUNTIME_CPU_FEATURES_H_

#include <set>
#include <string>

#include "absl/status/status.h"

namespace partita::cpu {

// The processor's flags in Linux's spelling, e.g. "avx512_vnni". Empty if
// /proc/cpuinfo has none.
std::set<std::string> HostFlags();

// FailedPrecondition, naming every feature in `features` that `flags` lacks.
// `features` is in LLVM's spelling, "+avx2,+fma,-sse4a". Features that no
// generated code uses (system instructions) are ignored.
absl::Status CheckFeatures(const std::string& features,
                           const std::set<std::string>& flags);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_FEATURES_H_
