// Checks the caller's tensors: a wrong tensor must be an error before any rank
// uses it.
#include "runtime/api/tensors.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace partita::api {
namespace {

using base::DType;

constexpr int32_t kHost = 1;  // kDLCPU
constexpr size_t kAlignment = 64;

std::optional<DType> DTypeOf(const partita_type& type) {
  for (int i = 0; i < base::kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    const partita_type other = TypeOf(dtype);
    if (other.code == type.code && other.bits == type.bits && type.lanes == 1)
      return dtype;
  }
  return std::nullopt;
}

bool IsRowMajor(const partita_tensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    // The stride of a dimension of size 1 has no meaning, nor have the outer
    // strides of an empty tensor.
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    if (tensor.shape[i] == 0) return true;
    expected *= tensor.shape[i];
  }
  return true;
}

std::string Describe(const partita_tensor& tensor) {
  const std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  if (const std::optional<DType> dtype = DTypeOf(tensor.type))
    return base::TypeName(*dtype, shape);
  return absl::StrCat("elements of DLPack type ", tensor.type.code, " with ",
                      tensor.type.bits, " bits and ", tensor.type.lanes,
                      " lanes, ", base::TypeName(DType::kU8, shape).substr(2));
}

// Memory and shape of a tensor in one allocation.
struct OwnedTensor {
  partita_managed_tensor managed;
  std::vector<int64_t> shape;
};

void Delete(partita_managed_tensor* managed) {
  if (managed == nullptr) return;
  std::free(managed->tensor.data);
  delete static_cast<OwnedTensor*>(managed->manager);
}

}  // namespace

partita_type TypeOf(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * base::SizeOf(dtype));
  switch (dtype) {
    case DType::kF32:
    case DType::kF64:
    case DType::kF16:
      return {PARTITA_FLOAT, bits, 1};
    case DType::kBF16:
      return {PARTITA_BFLOAT, bits, 1};
    case DType::kI1:
      return {PARTITA_BOOL, bits, 1};
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      return {PARTITA_INT, bits, 1};
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return {PARTITA_UINT, bits, 1};
    case DType::kF8E4M3:
      return {PARTITA_FLOAT8_E4M3FN, bits, 1};
    case DType::kF8E5M2:
      return {PARTITA_FLOAT8_E5M2, bits, 1};
  }
  return {PARTITA_FLOAT, bits, 1};
}

absl::StatusOr<void*> DataOf(const partita_tensor& tensor,
                             const base::TensorSpec& spec, const char* what,
                             bool needs_data) {
  const std::string wanted =
      absl::StrCat(what, " '", spec.name, "': expected ",
                   base::TypeName(spec.dtype, spec.shape));
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr))
    return absl::InvalidArgumentError(
        absl::StrCat(wanted, ", found a tensor of ", tensor.ndim,
                     " dimensions without a shape"));
  const bool has_shape =
      tensor.ndim == static_cast<int64_t>(spec.shape.size()) &&
      std::equal(spec.shape.begin(), spec.shape.end(), tensor.shape);
  if (DTypeOf(tensor.type) != spec.dtype || !has_shape)
    return absl::InvalidArgumentError(
        absl::StrCat(wanted, ", found ", Describe(tensor)));
  if (!IsRowMajor(tensor))
    return absl::InvalidArgumentError(absl::StrCat(
        wanted,
        " in row-major order without gaps, found other strides; pass "
        "a contiguous copy"));
  if (tensor.device.type != kHost)
    return absl::InvalidArgumentError(absl::StrCat(
        wanted, " in the host's memory (DLPack device 1), found device ",
        tensor.device.type, "; pass a copy in the host's memory"));
  if (tensor.data == nullptr) {
    if (!needs_data || spec.bytes == 0) return nullptr;
    return absl::InvalidArgumentError(
        absl::StrCat(wanted, ", found a tensor whose data is NULL"));
  }
  char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  if (reinterpret_cast<uintptr_t>(data) %
          static_cast<uintptr_t>(base::SizeOf(spec.dtype)) !=
      0)
    return absl::InvalidArgumentError(
        absl::StrCat(wanted,
                     " at a multiple of the element's size, found an "
                     "address that is not; pass an aligned copy"));
  return data;
}

absl::StatusOr<partita_managed_tensor*> NewTensor(
    const base::TensorSpec& spec) {
  auto owned = std::make_unique<OwnedTensor>();
  owned->shape = spec.shape;
  const size_t bytes =
      (static_cast<size_t>(spec.bytes) + kAlignment) / kAlignment * kAlignment;
  void* data = std::aligned_alloc(kAlignment, bytes);
  if (data == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat(
        "'", spec.name, "': expected ", bytes, " bytes of memory, found less"));
  std::memset(data, 0, bytes);
  partita_managed_tensor& managed = owned->managed;
  managed = {};
  managed.tensor.data = data;
  managed.tensor.device = {kHost, 0};
  managed.tensor.ndim = static_cast<int32_t>(owned->shape.size());
  managed.tensor.type = TypeOf(spec.dtype);
  managed.tensor.shape = owned->shape.data();
  managed.manager = owned.get();
  managed.deleter = Delete;
  return &owned.release()->managed;
}

}  // namespace partita::api
