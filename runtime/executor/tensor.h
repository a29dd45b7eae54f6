// Tensors as they pass between the host and the executor.
#ifndef PARTITA_RUNTIME_EXECUTOR_TENSOR_H_
#define PARTITA_RUNTIME_EXECUTOR_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"

namespace partita::executor {

// An input or output of a model.
struct TensorSpec {
  std::string name;
  base::DType dtype = base::DType::kF32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

// Host memory of a tensor, row-major; `data` belongs to the caller. 64-byte
// aligned memory is used where it lies on devices that share memory with the
// host; other memory is copied.
struct ConstTensor {
  base::DType dtype = base::DType::kF32;
  std::vector<int64_t> shape;
  const void* data = nullptr;
};
struct MutableTensor {
  base::DType dtype = base::DType::kF32;
  std::vector<int64_t> shape;
  void* data = nullptr;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_TENSOR_H_
