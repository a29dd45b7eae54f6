// The interface to a training run's batches.
#ifndef PARTITA_RUNTIME_DATA_BATCH_SOURCE_H_
#define PARTITA_RUNTIME_DATA_BATCH_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"

namespace partita::data {

// Memory for one batch: a tensor for each of a source's specs. Movable.
class Batch {
 public:
  Batch() = default;
  // Zeroed; untouched pages use no memory. ResourceExhausted if there is not
  // enough.
  static absl::StatusOr<Batch> Allocate(
      const std::vector<base::TensorSpec>& specs);

  Batch(Batch&& other) noexcept { *this = std::move(other); }
  Batch& operator=(Batch&& other) noexcept;
  ~Batch();

  // In the order of the specs; 64-byte aligned, valid while this object lives.
  const std::vector<base::ConstTensor>& tensors() const { return tensors_; }
  char* data(size_t index) {
    return static_cast<char*>(const_cast<void*>(tensors_[index].data));
  }

 private:
  std::vector<base::ConstTensor> tensors_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

// Rows [first, first + count) along B, the first dimension of every tensor of a
// batch, for a process that needs only some of them. The order of the data does
// not depend on the range. Rows outside the range are unspecified and not read
// from disk.
struct RowRange {
  int64_t first = 0;
  int64_t count = -1;  // -1: all remaining rows
};

// A source of global batches, so that the data is the same for every mesh;
// ranks in one process share them. Used by one thread at a time.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The tensors of a batch: the program's data inputs, as passed when the
  // source was made.
  virtual const std::vector<base::TensorSpec>& specs() const = 0;

  // Replaces the content of `batch`, which was allocated for specs().
  // OutOfRange after the last epoch if the number of epochs is bounded. Other
  // errors say where the data is damaged.
  virtual absl::Status Next(Batch& batch) = 0;

  // The position as a short text: after Restore(text), Next returns the same
  // batches as it would have now. Valid for any batch size and row range.
  virtual std::string State() const = 0;
  // InvalidArgument unless the text is the state of such a source over the same
  // data in the same order; the source is unchanged then.
  virtual absl::Status Restore(const std::string& state) = 0;
};

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_BATCH_SOURCE_H_
