// IDX files, the format of MNIST and similar data sets: one array each.
//
// Two zero bytes, a type (8: unsigned byte, 9: signed byte), the number of
// dimensions, each size as a big-endian 32-bit integer, and the elements,
// row-major. Types of more than one byte are big-endian; they are not used in
// practice, and are refused.
#ifndef PARTITA_RUNTIME_DATA_IDX_H_
#define PARTITA_RUNTIME_DATA_IDX_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"

namespace partita::data {

struct IdxArray {
  base::DType dtype;  // kU8 or kI8
  std::vector<int64_t> shape;
  std::string_view data;  // a view into the parsed bytes
};

// `path` is for messages. InvalidArgument if the file is malformed, cut, or of
// another type.
absl::StatusOr<IdxArray> ParseIdx(std::string_view bytes,
                                  const std::string& path);

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_IDX_H_
