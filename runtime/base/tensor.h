// Tensors in host memory, passed between files, data sources and executors.
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

// Host memory of a tensor, row-major; `data` belongs to the caller. On devices
// that share memory with the host, 64-byte aligned memory is used in place;
// other memory is copied.
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
