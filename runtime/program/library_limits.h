// What the runtime lets libraries take of a GPU's memory while they run, beside
// what a program plans: it asks them for no more, and the compiler counts it.
#ifndef PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_
#define PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_

#include <cstdint>

namespace partita::program {

// Of all operations together, which run one after another: the largest. In
// bytes.
inline constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;
inline constexpr int64_t kConvolutionWorkspaceBytes = int64_t{128} << 20;

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_
