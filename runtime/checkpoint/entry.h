// Describes the tensors of a checkpoint to the writer.
#ifndef PARTITA_RUNTIME_CHECKPOINT_ENTRY_H_
#define PARTITA_RUNTIME_CHECKPOINT_ENTRY_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/tensor.h"

namespace partita::checkpoint {

// The files that a tensor is stored in.
enum class Group {
  kModel,     // model-*.safetensors: parameters, under their own names
  kOptimizer  // optimizer-*.safetensors: other tensors that steps change
};

// Elements [first, first + count) of the whole tensor are elements [local,
// local + count) of this rank's block.
struct Run {
  int64_t first = 0;
  int64_t local = 0;
  int64_t count = 0;
};

// A logical, whole tensor, independent of the plan. All ranks pass the same
// specs and groups in the same order. Each element is written by the first rank
// that holds it, so a rank needs only its own blocks.
struct Entry {
  base::TensorSpec spec;
  Group group = Group::kModel;
  // Elements that this rank writes; empty if other ranks are the first holders.
  std::vector<Run> runs;
  // Size of this rank's block, and the function that copies it out; not called
  // if `runs` is empty.
  int64_t block_bytes = 0;
  std::function<absl::Status(char* block)> read;
  // The files hold a tensor per index of dimension 0, base::PartsOf, one
  // after the other.
  bool in_parts = false;
};

// An entry that a single rank, or one process for all its ranks, writes
// completely.
inline Entry WholeEntry(base::TensorSpec spec, Group group,
                        std::function<absl::Status(char* whole)> read) {
  const int64_t count = base::ElementCount(spec.shape).value_or(0);
  const int64_t bytes = count * base::SizeOf(spec.dtype);
  return {std::move(spec),   group, {{0, 0, count}}, bytes, std::move(read),
          /*in_parts=*/false};
}

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_ENTRY_H_
