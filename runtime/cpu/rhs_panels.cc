// oneDNN copies whole panels. A part of a panel is copied by a loop.
#include "runtime/cpu/rhs_panels.h"

#include <vector>

#include "runtime/base/status_macros.h"

namespace partita::cpu {
namespace {

void FillPanels(const device::GemmDesc& desc, const float* rhs, float* target) {
  for (int64_t first = 0; first < desc.n; first += kPanelColumns)
    for (int64_t k = 0; k < desc.k; ++k)
      for (int64_t i = 0; i < kPanelColumns; ++i) {
        const int64_t column = first + i;
        *target++ =
            column < desc.n
                ? rhs[k * desc.rhs_strides[1] + column * desc.rhs_strides[2]]
                : 0;
      }
}

}  // namespace

absl::StatusOr<std::shared_ptr<PackedWeight>> PackRhsPanels(
    DnnlContext& context, const device::GemmDesc& desc, const void* rhs) {
  const int64_t panels = (desc.n + kPanelColumns - 1) / kPanelColumns,
                stride = desc.rhs_strides[2];
  const std::vector<int64_t> dims = {desc.k, panels, kPanelColumns};
  PARTITA_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t wanted,
      MakeMemoryDesc(desc.dtype, dims,
                     {kPanelColumns, desc.k * kPanelColumns, 1}));
  if (desc.n % kPanelColumns == 0) {
    PARTITA_ASSIGN_OR_RETURN(
        const dnnl_memory_desc_t source,
        MakeMemoryDesc(desc.dtype, dims,
                       {desc.rhs_strides[1], kPanelColumns * stride, stride}));
    return PackConstant(context, {rhs, rhs}, source, wanted);
  }
  PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t source,
                           MakeMemoryDesc(desc.dtype, {desc.k, desc.n},
                                          {desc.rhs_strides[1], stride}));
  return PackConstant(context, rhs, source, wanted, [&](void* target) {
    FillPanels(desc, static_cast<const float*>(rhs),
               static_cast<float*>(target));
    return absl::OkStatus();
  });
}

}  // namespace partita::cpu
