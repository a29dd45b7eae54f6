// Where each tensor of a checkpoint lies: which file, which byte.
//
// Files are safetensors named as Hugging Face names them:
// model-00001-of-00003.safetensors ... and model.safetensors.index.json, which
// maps each tensor to its file; the same for the optimizer's. The layout
// follows from names, types and shapes alone, so that ranks agree on it without
// a word.
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
    std::string header;  // What comes before the tensors.
    int64_t bytes = 0;   // Of the whole file.
  };
  struct Place {
    size_t file = 0;
    int64_t offset = 0;  // From the start of the file.
  };
  // A small file, complete.
  struct Index {
    std::string name;
    std::string content;
  };
  std::vector<File> files;
  std::vector<Place> places;  // One per entry.
  std::vector<Index> indexes;
};

// Tensors are shared out in the order of entries, a new file being begun where
// one would exceed `shard_bytes` of tensors. InvalidArgument for names given
// twice and shapes that overflow.
absl::StatusOr<Layout> MakeLayout(const std::vector<Entry>& entries,
                                  int64_t shard_bytes);

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_LAYOUT_H_
