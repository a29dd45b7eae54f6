// Uses two slots of pinned memory in turn.
#include "runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/status_macros.h"

namespace partita::cuda {
namespace {

CuPointer At(const void* memory, int64_t offset) {
  return static_cast<CuPointer>(reinterpret_cast<uintptr_t>(memory)) +
         static_cast<CuPointer>(offset);
}

}  // namespace

Staging::~Staging() {
  if (!context_->Enter().ok()) return;
  for (Slot& slot : slots_) {
    if (slot.used) context_->driver().SynchronizeEvent(slot.event);
    if (slot.event != nullptr) context_->driver().DestroyEvent(slot.event);
    if (slot.memory != nullptr) context_->driver().FreeHost(slot.memory);
  }
}

absl::Status Staging::Acquire(Slot& slot) {
  const Driver& cuda = context_->driver();
  if (slot.memory == nullptr)
    PARTITA_RETURN_IF_ERROR(
        context_->Check(cuda.AllocateHost(&slot.memory, kPieceBytes),
                        "allocating 4 MiB of pinned host memory"));
  if (slot.event == nullptr)
    PARTITA_RETURN_IF_ERROR(context_->Check(
        cuda.CreateEvent(&slot.event, kCuEventNoTiming), "making an event"));
  if (!slot.used) return absl::OkStatus();
  slot.used = false;
  return context_->Check(cuda.SynchronizeEvent(slot.event),
                         "waiting for a copy");
}

absl::Status Staging::Mark(CuStream stream, Slot& slot) {
  slot.used = true;
  return context_->Check(context_->driver().RecordEvent(slot.event, stream),
                         "marking a copy");
}

absl::Status Staging::ToDevice(CuStream stream, void* target, const void* host,
                               int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    const size_t size = static_cast<size_t>(std::min(kPieceBytes, bytes - at));
    Slot& slot = slots_[next_];
    next_ = 1 - next_;
    PARTITA_RETURN_IF_ERROR(Acquire(slot));
    std::memcpy(slot.memory, static_cast<const char*>(host) + at, size);
    PARTITA_RETURN_IF_ERROR(
        context_->Check(context_->driver().CopyToDevice(
                            At(target, at), slot.memory, size, stream),
                        "copying to the GPU"));
    PARTITA_RETURN_IF_ERROR(Mark(stream, slot));
  }
  return absl::OkStatus();
}

absl::Status Staging::ToHost(CuStream stream, void* host, const void* source,
                             int64_t bytes) {
  const auto size_at = [&](int64_t at) {
    return static_cast<size_t>(std::min(kPieceBytes, bytes - at));
  };
  // The GPU fills one slot while the host empties the other.
  for (int64_t at = 0; at < bytes + kPieceBytes; at += kPieceBytes) {
    if (at < bytes) {
      Slot& slot = slots_[next_];
      PARTITA_RETURN_IF_ERROR(Acquire(slot));
      PARTITA_RETURN_IF_ERROR(
          context_->Check(context_->driver().CopyToHost(
                              slot.memory, At(source, at), size_at(at), stream),
                          "copying from the GPU"));
      PARTITA_RETURN_IF_ERROR(Mark(stream, slot));
    }
    next_ = 1 - next_;
    const int64_t last = at - kPieceBytes;
    if (last < 0 || last >= bytes) continue;
    Slot& slot = slots_[next_];
    PARTITA_RETURN_IF_ERROR(Acquire(slot));
    std::memcpy(static_cast<char*>(host) + last, slot.memory, size_at(last));
  }
  return absl::OkStatus();
}

}  // namespace partita::cuda
