// Samples from arrays, such as images and their labels, or features and values.
#ifndef PARTITA_RUNTIME_DATA_ARRAY_SOURCE_H_
#define PARTITA_RUNTIME_DATA_ARRAY_SOURCE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/order.h"

namespace partita::data {

struct ArrayOptions {
  // Exclusive upper bound for integers in "targets"; 0: none.
  int64_t classes = 0;
  // Bytes for a floating-point input become (byte / 255 - mean) / deviation.
  // Other elements keep their value.
  double mean = 0;
  double deviation = 1;
  OrderOptions order;
  RowRange rows;
};

// `files` names an IDX or .npy file for each of `specs`. Row i of all files
// forms sample i. A file's rows must have the input's shape, except for
// dimensions of size 1: [60000, 28, 28] fits [B, 1, 28, 28]. Images smaller
// than the input along some dimensions are centred and padded with zero bytes
// (28 x 28 in 32 x 32). The files stay mapped.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenArrays(
    const std::map<std::string, std::string>& files,
    const std::vector<base::TensorSpec>& specs, const ArrayOptions& options);

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_ARRAY_SOURCE_H_
