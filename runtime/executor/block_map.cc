// Whole trailing dimensions and the innermost divided one form one contiguous
// run.
#include "runtime/executor/block_map.h"

#include <cstring>

#include "runtime/program/types.h"

namespace partita::executor {

BlockMap::BlockMap(const program::Shard* shard, const program::TensorType& type,
                   const program::MeshPlace& place)
    : local_(program::ShapeOf(type)) {
  if (shard == nullptr) {
    global_ = local_;
    for (const int64_t size : global_) rows_.push_back({0, size});
  } else {
    global_ = program::ToVector(shard->shape());
    rows_ = program::OwnedBlock(*shard, place);
  }
  int64_t owned = 1;
  int64_t loops = 1;
  for (size_t i = 0; i < global_.size(); ++i) {
    const int64_t count = rows_[i].end - rows_[i].begin;
    local_count_ *= local_[i];
    global_count_ *= global_[i];
    owned *= count;
    first_ = first_ * global_[i] + rows_[i].begin;
    if (count != global_[i] || count != local_[i]) run_dim_ = i;
  }
  for (size_t i = 0; i < global_.size(); ++i) {
    const int64_t count = rows_[i].end - rows_[i].begin;
    if (i < run_dim_) loops *= count;
    if (i >= run_dim_) run_ *= count;
  }
  has_padding_ = owned != local_count_;
  is_range_ = !has_padding_ && (loops == 1 || owned == 0);
}

void BlockMap::ForEachRun(const Visit& visit) const {
  if (run_ == 0) return;
  std::vector<int64_t> index(run_dim_);
  for (size_t i = 0; i < run_dim_; ++i) {
    index[i] = rows_[i].begin;
    if (rows_[i].begin == rows_[i].end) return;
  }
  while (true) {
    int64_t global = 0;
    int64_t local = 0;
    for (size_t i = 0; i < global_.size(); ++i) {
      const int64_t row = i < run_dim_ ? index[i] : rows_[i].begin;
      global = global * global_[i] + row;
      local = local * local_[i] + row - rows_[i].begin;
    }
    visit(global, local, run_);
    size_t dim = run_dim_;
    while (dim > 0 && ++index[dim - 1] == rows_[dim - 1].end) {
      index[dim - 1] = rows_[dim - 1].begin;
      --dim;
    }
    if (dim == 0) return;
  }
}

void BlockMap::CopyIn(const void* global, void* local,
                      int64_t element_bytes) const {
  ForEachRun([&](int64_t from, int64_t to, int64_t count) {
    std::memcpy(static_cast<char*>(local) + to * element_bytes,
                static_cast<const char*>(global) + from * element_bytes,
                static_cast<size_t>(count * element_bytes));
  });
}

void BlockMap::CopyOut(const void* local, void* global,
                       int64_t element_bytes) const {
  ForEachRun([&](int64_t to, int64_t from, int64_t count) {
    std::memcpy(static_cast<char*>(global) + to * element_bytes,
                static_cast<const char*>(local) + from * element_bytes,
                static_cast<size_t>(count * element_bytes));
  });
}

}  // namespace partita::executor
