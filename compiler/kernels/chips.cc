// The table of chips.
#include "compiler/kernels/chips.h"

#include "llvm/ADT/STLExtras.h"

namespace partita::kernels {
namespace {

constexpr int64_t kKilo = 1024;

// CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability", maximum amount of shared memory per thread block: what a
// multiprocessor has (164, 100 and 228 KB; CUDA's cuda_occupancy.h has these,
// too) less the kilobyte of each block that is the system's.
constexpr Chip kChips[] = {
    {"sm_80", 163 * kKilo}, {"sm_86", 99 * kKilo},
    {"sm_87", 163 * kKilo}, {"sm_89", 99 * kKilo},
    {"sm_90", 227 * kKilo}, {"sm_90a", 227 * kKilo, /*warpgroups=*/true}};

}  // namespace

llvm::ArrayRef<Chip> chips() { return kChips; }

const Chip* findChip(llvm::StringRef name) {
  const auto* found = llvm::find_if(
      kChips, [&](const Chip& chip) { return chip.name == name; });
  return found == std::end(kChips) ? nullptr : found;
}

}  // namespace partita::kernels
