// Tensors in host memory owned by the runtime, and their sources.
#ifndef PARTITA_RUNTIME_TOOLS_HOST_TENSOR_H_
#define PARTITA_RUNTIME_TOOLS_HOST_TENSOR_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/executor/tensor.h"

namespace partita::tools {

// 64-byte aligned, zero at first.
class HostTensor {
 public:
  // ResourceExhausted if there is not enough memory.
  static absl::StatusOr<HostTensor> Make(const executor::TensorSpec& spec);

  const executor::TensorSpec& spec() const { return spec_; }
  char* data() const { return data_.get(); }
  executor::ConstTensor View() const {
    return {spec_.dtype, spec_.shape, data_.get()};
  }
  executor::MutableTensor MutableView() const {
    return {spec_.dtype, spec_.shape, data_.get()};
  }

 private:
  struct FreeMemory {
    void operator()(char* memory) const { std::free(memory); }
  };
  executor::TensorSpec spec_;
  std::unique_ptr<char, FreeMemory> data_;
};

struct InputSources {
  std::vector<std::pair<std::string, std::string>>
      // Name, and file or content (see RunHelp).
      named;
  std::string safetensors;  // empty: none
  bool random = false;      // fill the remaining inputs
  uint64_t seed = 0;
};

// Makes one tensor per spec. InvalidArgument if a named input does not exist,
// if a file's type differs from the model's, or if inputs are missing; the
// message then lists all of them with an example.
absl::StatusOr<std::vector<HostTensor>> MakeInputs(
    const std::vector<executor::TensorSpec>& specs,
    const InputSources& sources);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_HOST_TENSOR_H_
