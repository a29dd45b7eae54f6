// Assigns each tensor of a checkpoint to a file and a byte offset.
//
// Files are safetensors with Hugging Face's names:
// model-00001-of-00003.safetensors ... and model.safetensors.index.json, which
// maps each tensor to its file; likewise for the optimizer. The layout depends
// only on names, types and shapes, so ranks agree on it without communication.
#ifndef PARTITA_RUNTIME_CHECKPOINT_LAYOUT_H_
#define PARTITA_RUNTIME_CHECKPOINT_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/entry.h"

namespace partita::checkpoint {

struct Layout {
  struct File {
    std::string name;
    std::string header;  // bytes before the tensors
    int64_t bytes = 0;   // of the whole file
  };
  struct Place {
    size_t file = 0;
    int64_t offset = 0;  // from the start of the file
  };
  // A small file, complete.
  struct Index {
    std::string name;
    std::string content;
  };
  std::vector<File> files;
  std::vector<Place> places;  // one per entry
  std::vector<Index> indexes;
};

// Assigns tensors to files in the order of entries. Begins a new file if one
// would exceed `shard_bytes` of tensors. InvalidArgument for duplicate names
// and for shapes that overflow.
absl::StatusOr<Layout> MakeLayout(const std::vector<Entry>& entries,
                                  int64_t shard_bytes);

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_LAYOUT_H_
