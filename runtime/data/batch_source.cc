// Memory of batches: one anonymous mapping, with tensors at multiples of 64
// bytes.
#include "runtime/data/batch_source.h"

#include <sys/mman.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/quantity.h"

namespace partita::data {

absl::StatusOr<Batch> Batch::Allocate(
    const std::vector<base::TensorSpec>& specs) {
  constexpr size_t kAlignment = 64;
  std::vector<size_t> offsets;
  size_t total = 0;
  for (const base::TensorSpec& spec : specs) {
    offsets.push_back(total);
    const size_t bytes = static_cast<size_t>(spec.bytes);
    if (spec.bytes < 0 || __builtin_add_overflow(total, bytes, &total) ||
        __builtin_add_overflow(total, kAlignment - 1, &total))
      return absl::InvalidArgumentError(
          absl::StrCat("batch: expected tensors that fit into memory, found '",
                       spec.name, "' of ", spec.bytes, " bytes"));
    total = total / kAlignment * kAlignment;
  }
  Batch batch;
  if (total > 0) {
    void* memory = mmap(nullptr, total, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return absl::ResourceExhaustedError(
          absl::StrCat("not enough memory for a batch of ",
                       base::FormatBytes(static_cast<int64_t>(total)),
                       "; compile the model for a smaller batch"));
    batch.memory_ = memory;
    batch.bytes_ = total;
  }
  for (size_t i = 0; i < specs.size(); ++i)
    batch.tensors_.push_back({specs[i].dtype, specs[i].shape,
                              static_cast<char*>(batch.memory_) + offsets[i]});
  return batch;
}

Batch& Batch::operator=(Batch&& other) noexcept {
  std::swap(tensors_, other.tensors_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Batch::~Batch() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

}  // namespace partita::data
