// Maps a device's block to its elements in the global tensor.
#ifndef PARTITA_RUNTIME_EXECUTOR_BLOCK_MAP_H_
#define PARTITA_RUNTIME_EXECUTOR_BLOCK_MAP_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/program/mesh.h"
#include "runtime/program/program_generated.h"

namespace partita::executor {

class BlockMap {
 public:
  // `shard` may be null: then the block is the whole tensor.
  BlockMap(const program::Shard* shard, const program::TensorType& type,
           const program::MeshPlace& place);

  // Number of elements of the block as stored on the device, padding included,
  // and of the global tensor.
  int64_t local_count() const { return local_count_; }
  int64_t global_count() const { return global_count_; }
  const std::vector<int64_t>& global_shape() const { return global_; }

  // True if the block is elements [first, first + local_count) of the global
  // tensor, without padding.
  bool IsRange() const { return is_range_; }
  int64_t first() const { return first_; }
  // True if some of the block's elements are padding.
  bool HasPadding() const { return has_padding_; }

  // Calls visit(global, local, count) in order for each run of `count` elements
  // that is contiguous in both tensors; `global` and `local` are element
  // offsets.
  using Visit = std::function<void(int64_t, int64_t, int64_t)>;
  void ForEachRun(const Visit& visit) const;

  // Copies the block out of or into a global tensor; leaves padding unchanged.
  void CopyIn(const void* global, void* local, int64_t element_bytes) const;
  void CopyOut(const void* local, void* global, int64_t element_bytes) const;

 private:
  std::vector<int64_t> global_;
  std::vector<int64_t> local_;
  std::vector<program::Rows> rows_;
  // Dimensions from here on are contiguous.
  size_t run_dim_ = 0;
  int64_t run_ = 1;
  int64_t local_count_ = 1;
  int64_t global_count_ = 1;
  int64_t first_ = 0;
  bool is_range_ = true;
  bool has_padding_ = false;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_BLOCK_MAP_H_
