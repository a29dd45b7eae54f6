// Checks machine code before the system's loader maps it.
#ifndef PARTITA_RUNTIME_CPU_ELF_CHECK_H_
#define PARTITA_RUNTIME_CPU_ELF_CHECK_H_

#include <string_view>

#include "absl/status/status.h"

namespace partita::cpu {

// InvalidArgument unless `code` is a 64-bit shared library for this processor
// whose segments lie inside it. The loader maps segments without checking, and
// the first access beyond the end would kill the process.
absl::Status CheckSharedLibrary(std::string_view code);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_ELF_CHECK_H_
