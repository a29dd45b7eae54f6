// NumPy's .npy files: one array each.
//
// The file is "\x93NUMPY", a version (1, 2 or 3), the length of a header, the
// header (a Python dictionary of dtype, order and shape, padded), and the
// elements. We read little-endian row-major arrays and write version 1.
#ifndef PARTITA_RUNTIME_BASE_NPY_H_
#define PARTITA_RUNTIME_BASE_NPY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"

namespace partita::base {

struct NpyArray {
  DType dtype;
  std::vector<int64_t> shape;
  std::string_view
      data;  // a view into the parsed bytes; in general not aligned
};

// `path` is for messages. InvalidArgument if the file is malformed, big-endian,
// in column order, or of an unsupported type.
absl::StatusOr<NpyArray> ParseNpy(std::string_view bytes,
                                  const std::string& path);

// The bytes before the elements. NumPy has no bf16: pass f32.
std::string NpyHeader(DType dtype, const std::vector<int64_t>& shape);

// Writes an array of row-major elements; the file appears whole or not at all.
// bf16 is written as f32, which represents every bf16 value.
absl::Status WriteNpy(const std::string& path, DType dtype,
                      const std::vector<int64_t>& shape, const void* data);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_NPY_H_
