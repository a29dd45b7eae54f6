// Batches that somebody else made: one safetensors file each.
#ifndef PARTITA_RUNTIME_DATA_BATCH_FOLDER_H_
#define PARTITA_RUNTIME_DATA_BATCH_FOLDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/order.h"

namespace partita::data {

struct FolderOptions {
  OrderOptions order;
  RowRange rows;
};

// `path` is a folder whose *.safetensors, sorted by name, are one batch each,
// or one such file. A file holds a tensor for each of `specs`, under its name
// and in its shape; elements are converted to its type, but floats are not made
// integers. Other tensors are not looked at. A batch is opened when its turn
// comes.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenBatchFolder(
    const std::string& path, const std::vector<base::TensorSpec>& specs,
    const FolderOptions& options);

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_BATCH_FOLDER_H_
