// Uses anonymous mappings, so that memory can be returned page by page.
#include "runtime/cpu/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace partita::cpu {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

size_t MappedSize(int64_t bytes) {
  return static_cast<size_t>(std::max<int64_t>(bytes, 1));
}

}  // namespace

absl::StatusOr<void*> AllocatePages(int64_t bytes) {
  if (bytes < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot allocate ", bytes, " bytes"));
  void* memory = mmap(nullptr, MappedSize(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot allocate ", bytes, " bytes of memory: ", strerror(errno)));
  }
  if (bytes >= kHugePage) madvise(memory, MappedSize(bytes), MADV_HUGEPAGE);
  return memory;
}

void FreePages(void* memory, int64_t bytes) {
  munmap(memory, MappedSize(bytes));
}

void ReleasePages(void* memory, int64_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + static_cast<uintptr_t>(bytes)) / page * page;
  if (begin < end)
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Scratch::~Scratch() {
  if (data_ != nullptr) FreePages(data_, bytes_);
}

absl::Status Scratch::Reserve(int64_t bytes) {
  if (bytes <= bytes_) return absl::OkStatus();
  absl::StatusOr<void*> memory = AllocatePages(bytes);
  if (!memory.ok()) return memory.status();
  if (data_ != nullptr) FreePages(data_, bytes_);
  data_ = static_cast<char*>(*memory);
  bytes_ = bytes;
  return absl::OkStatus();
}

}  // namespace partita::cpu
