// Names of the processors that code can be generated for.
#ifndef PARTITA_COMPILER_KERNELS_CPU_NAMES_H_
#define PARTITA_COMPILER_KERNELS_CPU_NAMES_H_

#include <string>

namespace partita::kernels {

// Checks the name of a processor of this machine's architecture. Returns an
// error message with the nearest known names; empty if LLVM knows `cpu` or it
// is "host".
std::string checkCpu(const std::string& cpu);

// Instruction sets that code for `cpu` may use, as LLVM writes them:
// "+avx2,+fma". Requires that checkCpu accepts `cpu`.
std::string requiredFeatures(const std::string& cpu);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_CPU_NAMES_H_
