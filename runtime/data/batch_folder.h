// Prepared batches: one safetensors file each.
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

// `path` is a folder whose *.safetensors files, sorted by name, are one batch
// each, or a single such file. A file contains a tensor for each of `specs`,
// with its name and shape. Elements are converted to its type, but floats are
// not converted to integers. Other tensors are ignored. A file is opened when
// its batch is due.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenBatchFolder(
    const std::string& path, const std::vector<base::TensorSpec>& specs,
    const FolderOptions& options);

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_BATCH_FOLDER_H_
