// A block is freed when neither the scratch nor a graph holds it.
#include "runtime/cuda/scratch.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::cuda {

class Scratch::Memory {
 public:
  Memory(std::shared_ptr<Context> context, CuPointer data)
      : context_(std::move(context)), data_(data) {}
  Memory(const Memory&) = delete;
  ~Memory() {
    if (context_->Enter().ok()) context_->driver().Free(data_);
  }
  char* data() const { return reinterpret_cast<char*>(data_); }

 private:
  const std::shared_ptr<Context> context_;
  const CuPointer data_;
};

char* Scratch::data() const {
  return memory_ == nullptr ? nullptr : memory_->data();
}

absl::Status Scratch::Reserve(int64_t bytes) {
  if (bytes <= bytes_) return absl::OkStatus();
  const Driver& cuda = context_->driver();
  if (memory_.use_count() == 1)
    PARTITA_RETURN_IF_ERROR(
        context_->Check(cuda.SynchronizeAll(), "waiting for the GPU"));
  memory_.reset();
  bytes_ = 0;
  CuPointer data = 0;
  PARTITA_RETURN_IF_ERROR(context_->Check(
      cuda.Allocate(&data, static_cast<size_t>(bytes)),
      absl::StrCat("allocating ", bytes, " bytes for ", what_)));
  memory_ = std::make_shared<Memory>(context_, data);
  bytes_ = bytes;
  return absl::OkStatus();
}

}  // namespace partita::cuda
