// Tensor types passed between the host and the executor.
#ifndef PARTITA_RUNTIME_EXECUTOR_TENSOR_H_
#define PARTITA_RUNTIME_EXECUTOR_TENSOR_H_

#include "runtime/base/tensor.h"

namespace partita::executor {

// An input or output of a model.
using base::TensorSpec;

using base::ConstTensor;
using base::MutableTensor;

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_TENSOR_H_
