// Picks the smallest buffer that fits; uses huge pages for large buffers.
#include "runtime/comm/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace partita::comm {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t AlignUp(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Buffer BufferPool::Take(int64_t bytes) {
  auto best = buffers_.end();
  for (auto it = buffers_.begin(); it != buffers_.end(); ++it)
    if (it->capacity >= bytes && it->capacity <= 2 * bytes + kLine &&
        (best == buffers_.end() || it->capacity < best->capacity))
      best = it;
  if (best != buffers_.end()) {
    std::swap(*best, buffers_.back());
    Buffer buffer = std::move(buffers_.back());
    buffers_.pop_back();
    return buffer;
  }
  const int64_t unit = bytes >= kHugePage ? kHugePage : kLine;
  Buffer buffer;
  buffer.capacity = AlignUp(std::max<int64_t>(bytes, 1), unit);
  const auto size = static_cast<size_t>(buffer.capacity);
  buffer.data.reset(
      static_cast<char*>(std::aligned_alloc(static_cast<size_t>(unit), size)));
  if (buffer.data == nullptr) throw std::bad_alloc();
  if (unit == kHugePage) madvise(buffer.data.get(), size, MADV_HUGEPAGE);
  return buffer;
}

void BufferPool::Give(Buffer buffer) { buffers_.push_back(std::move(buffer)); }

}  // namespace partita::comm
