// Encodes tensor maps for the driver, which takes dimensions innermost first.
#include "runtime/cuda/tensor_maps.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace partita::cuda {
namespace {

using base::DType;

// Copies depend on the element size only, so signedness does not matter.
CuTensorMapType TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kCuMapF32;
    case DType::kF64:
      return kCuMapF64;
    case DType::kF16:
      return kCuMapF16;
    case DType::kBF16:
      return kCuMapBF16;
    case DType::kI16:
    case DType::kU16:
      return kCuMapU16;
    case DType::kI32:
      return kCuMapI32;
    case DType::kU32:
      return kCuMapU32;
    case DType::kI64:
      return kCuMapI64;
    case DType::kU64:
      return kCuMapU64;
    default:
      return kCuMapU8;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaTensorMaps>> CudaTensorMaps::Make(
    std::shared_ptr<Context> context, std::vector<device::TensorMapDesc> maps,
    void* const* buffers) {
  if (context->driver().EncodeTensorMap == nullptr)
    return absl::FailedPreconditionError(
        "the model's kernels copy by tensor maps, and this driver has no "
        "function cuTensorMapEncodeTiled: install a driver for CUDA 12.0 or "
        "newer");
  PARTITA_RETURN_IF_ERROR(context->Enter());
  std::unique_ptr<CudaTensorMaps> result(
      new CudaTensorMaps(std::move(context), std::move(maps)));
  PARTITA_RETURN_IF_ERROR(result->Update(buffers));
  return result;
}

absl::Status CudaTensorMaps::Update(void* const* buffers) {
  for (size_t i = 0; i < descs_.size(); ++i) {
    void* const operand = buffers[descs_[i].operand];
    if (operand != encoded_[i]) PARTITA_RETURN_IF_ERROR(Encode(i, operand));
  }
  return absl::OkStatus();
}

absl::Status CudaTensorMaps::Encode(size_t i, void* operand) {
  constexpr size_t kMaxDimensions = 5;
  const device::TensorMapDesc& desc = descs_[i];
  const size_t rank = desc.shape.size();
  std::array<uint64_t, kMaxDimensions> sizes = {}, strides = {};
  std::array<uint32_t, kMaxDimensions> box = {}, steps = {};
  for (size_t d = 0; d < rank; ++d) {
    sizes[d] = static_cast<uint64_t>(desc.shape[rank - 1 - d]);
    box[d] = static_cast<uint32_t>(desc.box[rank - 1 - d]);
    steps[d] = 1;
    if (d + 1 < rank)
      strides[d] = static_cast<uint64_t>(desc.strides[rank - 2 - d]);
  }
  const CuResult result = context_->driver().EncodeTensorMap(
      &maps_[i], TypeOf(desc.dtype), static_cast<uint32_t>(rank),
      static_cast<char*>(operand) + desc.offset, sizes.data(), strides.data(),
      box.data(), steps.data(), kCuMapNoInterleave,
      desc.swizzled ? kCuMapSwizzle128 : kCuMapNoSwizzle, kCuMapPromote128,
      kCuMapFillZeros);
  if (result != kCuSuccess)
    return context_->Check(
        result, absl::StrCat("encoding a tensor map of ",
                             base::TypeName(desc.dtype, desc.shape),
                             " with strides of [",
                             absl::StrJoin(desc.strides, ","), "] bytes, at ",
                             absl::Hex(reinterpret_cast<uintptr_t>(operand)),
                             " + ", desc.offset));
  encoded_[i] = operand;
  return absl::OkStatus();
}

}  // namespace partita::cuda
