// Converts tensors of the C interface (DLPack's) to runtime tensors.
#ifndef PARTITA_RUNTIME_API_TENSORS_H_
#define PARTITA_RUNTIME_API_TENSORS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/api/partita.h"
#include "runtime/base/tensor.h"

namespace partita::api {

partita_type TypeOf(base::DType dtype);

// The address of the first element. InvalidArgument unless the tensor is
// row-major host memory of `spec`'s type and shape; the message begins with
// `what`, such as "input", and the spec's name. If `needs_data` is false, null
// data is accepted.
absl::StatusOr<void*> DataOf(const partita_tensor& tensor,
                             const base::TensorSpec& spec, const char* what,
                             bool needs_data = true);

// Zeroed memory for `spec`, 64-byte aligned. The result's deleter frees it.
absl::StatusOr<partita_managed_tensor*> NewTensor(const base::TensorSpec& spec);

}  // namespace partita::api

#endif  // PARTITA_RUNTIME_API_TENSORS_H_
