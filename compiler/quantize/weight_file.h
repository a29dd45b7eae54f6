// Reads the numbers of parameters, and writes parameters to one file.
#ifndef PARTITA_COMPILER_QUANTIZE_WEIGHT_FILE_H_
#define PARTITA_COMPILER_QUANTIZE_WEIGHT_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dialects/nn/dialect.h"
#include "runtime/base/dtype.h"
#include "runtime/base/mapped_file.h"

namespace partita::quantize {

// The bytes of a source as stored, in a file that stays mapped. Relative paths
// are relative to `folder`. NotFound or InvalidArgument says what is missing.
struct StoredBytes {
  base::MappedFile file;
  std::string_view bytes;
  base::DType dtype = base::DType::kF32;
};
absl::StatusOr<StoredBytes> readSource(nn::FileAttr source,
                                       const std::string& folder);

// The elements of a source as f32.
absl::StatusOr<std::vector<float>> readFloats(nn::FileAttr source,
                                              const std::string& folder);

// Tensors that one safetensors file will hold, in the order in which they were
// added.
class WeightFile {
 public:
  // `write` passes the tensor's bytes on when the file is written.
  using Append = std::function<absl::Status(std::string_view)>;
  using Write = std::function<absl::Status(const Append&)>;
  void add(const std::string& name, base::DType dtype,
           llvm::ArrayRef<int64_t> shape, Write write);

  // Writes the file, and calls `place` with each tensor's number and its first
  // byte in the file.
  absl::Status write(const std::string& path,
                     const std::function<void(size_t, uint64_t)>& place) const;

 private:
  struct Tensor {
    std::string name;
    base::DType dtype;
    std::vector<int64_t> shape;
    Write write;
  };
  std::vector<Tensor> tensors_;
};

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_WEIGHT_FILE_H_
