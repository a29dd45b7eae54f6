// A constant right-hand side of a product of f32, copied into panels.
#ifndef PARTITA_RUNTIME_CPU_RHS_PANELS_H_
#define PARTITA_RUNTIME_CPU_RHS_PANELS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// Columns of a panel.
inline constexpr int64_t kPanelColumns = 32;

// Copies the matrix `rhs` [k, n] of the product, which has no batch of its own.
// Element (k, n) is at ((n / kPanelColumns) * desc.k + k) * kPanelColumns + n %
// kPanelColumns, and columns that are missing in the last panel are zero. All
// products of one matrix share a copy. It lies on huge pages, which are read up
// to ten times as fast as a mapped file.
// ResourceExhausted if memory ran out.
absl::StatusOr<std::shared_ptr<PackedWeight>> PackRhsPanels(
    DnnlContext& context, const device::GemmDesc& desc, const void* rhs);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_RHS_PANELS_H_
