// GPU memory of libraries while they run, in addition to the program's own
// plan. The runtime grants no more, and the compiler counts it.
#ifndef PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_
#define PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_

#include <cstdint>

namespace partita::program {

// Workspace in bytes, shared by all products or all convolutions, since they
// run one after another.
inline constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;
inline constexpr int64_t kConvolutionWorkspaceBytes = int64_t{128} << 20;

// Send slots per receiver in a pipeline. A device copies sends into them in
// turn; each is as large as the largest tensor sent through it. The runtime
// uses more slots if devices would otherwise wait for each other in a cycle.
inline constexpr int64_t kTransferSlots = 2;
inline constexpr int64_t kTransferSlotAlignment = 256;

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_
