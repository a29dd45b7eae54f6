// Tensors in host memory of the runtime's own, and where they come from.
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
      named;                // input, file or content (see RunHelp)
  std::string safetensors;  // empty: none
  bool random = false;      // whether to fill what remains
  uint64_t seed = 0;
};

// One tensor per spec. InvalidArgument if a named input does not exist, a file
// does not have the type that the model expects, or inputs are missing: then
// all of them are listed with an example.
absl::StatusOr<std::vector<HostTensor>> MakeInputs(
    const std::vector<executor::TensorSpec>& specs,
    const InputSources& sources);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_HOST_TENSOR_H_
