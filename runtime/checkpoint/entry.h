// The tensors of a checkpoint, as those who save them describe them.
#ifndef PARTITA_RUNTIME_CHECKPOINT_ENTRY_H_
#define PARTITA_RUNTIME_CHECKPOINT_ENTRY_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/tensor.h"

namespace partita::checkpoint {

// Which files a tensor goes to.
enum class Group {
  kModel,     // model-*.safetensors: the parameters, under their own names
  kOptimizer  // optimizer-*.safetensors: everything else that steps change
};

// Elements [first, first + count) of the whole tensor are elements
// [local, local + count) of this rank's block.
struct Run {
  int64_t first = 0;
  int64_t local = 0;
  int64_t count = 0;
};

// A logical tensor: whole, whatever the plan. All ranks give the same specs and
// groups in the same order. Each element is written by one rank: of several
// that hold it, the first. So no rank ever holds more than its own blocks.
struct Entry {
  base::TensorSpec spec;
  Group group = Group::kModel;
  // What this rank writes; none if other ranks hold all of it first.
  std::vector<Run> runs;
  // Bytes of this rank's block, and what copies it out; not called without
  // runs.
  int64_t block_bytes = 0;
  std::function<absl::Status(char* block)> read;
};

// An entry that one rank, or one process for all its ranks, holds as a whole.
inline Entry WholeEntry(base::TensorSpec spec, Group group,
                        std::function<absl::Status(char* whole)> read) {
  const int64_t count = base::ElementCount(spec.shape).value_or(0);
  const int64_t bytes = count * base::SizeOf(spec.dtype);
  return {std::move(spec), group, {{0, 0, count}}, bytes, std::move(read)};
}

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_ENTRY_H_
