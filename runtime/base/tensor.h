// Tensors in host memory, as files, data sources and executors hand them to one
// another.
#ifndef PARTITA_RUNTIME_BASE_TENSOR_H_
#define PARTITA_RUNTIME_BASE_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"

namespace partita::base {

// A tensor with a name: an input or output of a model, a parameter.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

// Host memory of a tensor, row-major; `data` belongs to the caller. 64-byte
// aligned memory is used where it lies on devices that share memory with the
// host; other memory is copied.
struct ConstTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  const void* data = nullptr;
};
struct MutableTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  void* data = nullptr;
};

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_TENSOR_H_
