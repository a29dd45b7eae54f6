// Tensors of the C interface, which are DLPack's, as those of the runtime.
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
// `what`, such as "input", and the spec's name. `needs_data`: false accepts
// null.
absl::StatusOr<void*> DataOf(const partita_tensor& tensor,
                             const base::TensorSpec& spec, const char* what,
                             bool needs_data = true);

// Zeroed memory for `spec`, aligned to 64 bytes. Owned by the result's deleter.
absl::StatusOr<partita_managed_tensor*> NewTensor(const base::TensorSpec& spec);

}  // namespace partita::api

#endif  // PARTITA_RUNTIME_API_TENSORS_H_
