// What the runtime takes of a GPU's memory for libraries while they run, beside
// what a program plans: it asks them for no more, and the compiler counts it.
#ifndef PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_
#define PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_

#include <cstdint>

namespace partita::program {

// Of all operations together, which run one after another: the largest. In
// bytes.
inline constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;
inline constexpr int64_t kConvolutionWorkspaceBytes = int64_t{128} << 20;

// To which a device copies what it sends to another one of the pipeline, one
// after the other: of each receiver, each as large as the largest tensor that
// it is for. More where devices would wait for each other in a circle.
inline constexpr int64_t kTransferSlots = 2;
inline constexpr int64_t kTransferSlotAlignment = 256;

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_
