// Samples out of arrays: images and their labels, features and values.
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
  // Integers in "targets" must lie below this; 0: whatever they are.
  int64_t classes = 0;
  // Bytes that go to a floating-point input become (byte / 255 - mean) /
  // deviation. Other elements keep their value.
  double mean = 0;
  double deviation = 1;
  OrderOptions order;
  RowRange rows;
};

// `files` names a file for each of `specs`: an IDX file, or .npy. Row i of all
// of them is sample i. A file's rows have the shape of the input's, dimensions
// of size 1 aside: [60000, 28, 28] fits [B, 1, 28, 28]. A file whose images are
// smaller than the input's along some dimensions is surrounded by zero bytes
// there (28 x 28 in the middle of 32 x 32). The files stay mapped.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenArrays(
    const std::map<std::string, std::string>& files,
    const std::vector<base::TensorSpec>& specs, const ArrayOptions& options);

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_ARRAY_SOURCE_H_
