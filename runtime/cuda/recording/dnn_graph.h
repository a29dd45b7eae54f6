// Graphs of products, pointwise operations and reductions, as plain loops in
// f32.
#ifndef PARTITA_RUNTIME_CUDA_RECORDING_DNN_GRAPH_H_
#define PARTITA_RUNTIME_CUDA_RECORDING_DNN_GRAPH_H_

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/cuda/dnn_api.h"
#include "runtime/cuda/recording/dnn_objects.h"

namespace partita::cuda::recording {

class OperationGraph {
 public:
  // `graph` is a finalized kDnnGraph without convolutions.
  explicit OperationGraph(const Object& graph);

  // True if all shapes fit: of four dimensions, equal or 1, where the number
  // of heads of a product's second factor divides that of the first.
  bool Fits() const;
  // Gives tensors their memory. False if one is missing or badly aligned.
  // Tensors by value are read now.
  bool Bind(const std::vector<int64_t>& ids,
            const std::vector<char*>& pointers);
  void Run() const;

 private:
  struct Tensor {
    std::vector<int64_t> dims, strides;
    int type = 0;
    int64_t alignment = 1;
    bool is_virtual = false, is_by_value = false;
    char* data = nullptr;
    float value = 0;  // if by value
  };
  struct Operation {
    DnnKind kind;
    int mode = 0;
    int64_t axis = -1;
    int64_t x = 0, b = 0, selector = 0, y = 0;  // ids; 0: none
  };
  using Values = std::map<int64_t, std::vector<float>>;  // dense, by id

  int64_t Add(const Object* tensor);
  std::vector<float> Read(const Tensor& tensor) const;
  void Write(const Tensor& tensor, std::vector<float>& values) const;
  void Compute(const Operation& operation, Values& values) const;
  void Multiply(const Operation& operation, Values& values) const;

  std::map<int64_t, Tensor> tensors_;  // by id
  std::vector<Operation> operations_;
};

}  // namespace partita::cuda::recording

#endif  // PARTITA_RUNTIME_CUDA_RECORDING_DNN_GRAPH_H_
