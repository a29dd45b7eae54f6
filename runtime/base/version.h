// The version of Partita, shared by the compiler, the runtime and the library.
// Semantic: before 1.0 a minor version may change command lines and file
// formats; a patch version changes neither.
#ifndef PARTITA_RUNTIME_BASE_VERSION_H_
#define PARTITA_RUNTIME_BASE_VERSION_H_

namespace partita::base {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_VERSION_H_
