// The processors that code can be generated for.
#ifndef PARTITA_COMPILER_KERNELS_CPU_NAMES_H_
#define PARTITA_COMPILER_KERNELS_CPU_NAMES_H_

#include <string>

namespace partita::kernels {

// What is wrong with `cpu` as a name of a processor of this machine's
// architecture, with the known names nearest to it; empty if LLVM knows it, or
// if it is "host".
std::string checkCpu(const std::string& cpu);

// The instruction sets that code for `cpu` (which checkCpu accepts) may use, as
// LLVM writes them: "+avx2,+fma".
std::string requiredFeatures(const std::string& cpu);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_CPU_NAMES_H_
