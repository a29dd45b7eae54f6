// Maps memory or a file without a name, which vanishes with the process.
#include "runtime/checkpoint/snapshot_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_error.h"
#include "runtime/base/quantity.h"

namespace partita::checkpoint {
namespace {

// Some file systems lack O_TMPFILE.
int OpenNameless(const std::string& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string path = folder + "/snapshot-XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

}  // namespace

absl::Status SnapshotMemory::Reserve(int64_t bytes, const std::string& folder) {
  if (bytes <= bytes_) return absl::OkStatus();
  Free();
  const auto size = static_cast<size_t>(bytes);
  in_file_ = !folder.empty();
  int file = -1;
  if (in_file_) {
    file = OpenNameless(folder);
    if (file < 0)
      return base::FileError(
          absl::StrCat(
              "checkpoint: ", folder,
              ": cannot create a file for a snapshot, so nothing was written"),
          errno);
    if (const int error = posix_fallocate(file, 0, bytes); error != 0) {
      close(file);
      return base::FileError(
          absl::StrCat("checkpoint: ", folder, ": no room for a snapshot of ",
                       base::FormatBytes(bytes), ", so nothing was written"),
          error);
    }
  }
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE,
           in_file_ ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(
        absl::StrCat("checkpoint: no memory for a snapshot of ",
                     base::FormatBytes(bytes), "; nothing was written"));
  data_ = static_cast<char*>(memory);
  bytes_ = bytes;
  return absl::OkStatus();
}

void SnapshotMemory::Unload(int64_t offset, int64_t bytes) {
  if (!in_file_ || bytes <= 0) return;
  // Neighbours that share a page are read again.
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t begin = offset / page * page;
  madvise(data_ + begin, static_cast<size_t>(offset + bytes - begin),
          MADV_DONTNEED);
}

void SnapshotMemory::Free() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace partita::checkpoint
