// The table of chips.
#include "compiler/kernels/chips.h"

#include "llvm/ADT/STLExtras.h"

namespace partita::kernels {
namespace {

constexpr int64_t kKilo = 1024;

// Maximum shared memory per thread block, from the CUDA C++ Programming Guide,
// "Technical Specifications per Compute Capability": the 164, 100 or 228 KB of
// a multiprocessor (also in CUDA's cuda_occupancy.h) minus 1 KB that the system
// reserves for each block.
constexpr Chip kChips[] = {
    {"sm_80", 163 * kKilo},
    {"sm_86", 99 * kKilo},
    {"sm_87", 163 * kKilo},
    {"sm_89", 99 * kKilo, /*warpgroups=*/false, /*float8=*/true},
    {"sm_90", 227 * kKilo, /*warpgroups=*/false, /*float8=*/true},
    {"sm_90a", 227 * kKilo, /*warpgroups=*/true, /*float8=*/true}};

}  // namespace

llvm::ArrayRef<Chip> chips() { return kChips; }

const Chip* findChip(llvm::StringRef name) {
  const auto* found = llvm::find_if(
      kChips, [&](const Chip& chip) { return chip.name == name; });
  return found == std::end(kChips) ? nullptr : found;
}

}  // namespace partita::kernels
