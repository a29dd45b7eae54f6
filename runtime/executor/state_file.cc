// Creates, locks, fills and removes the file.
#include "runtime/executor/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_error.h"
#include "runtime/base/quantity.h"
#include "runtime/base/status_macros.h"

namespace partita::executor {
namespace {

// Returns false if another process still has the lock after the wait. The wait
// is for a killed process: its lock lasts until the kernel has ended the
// transfers that it left in io_uring.
absl::StatusOr<bool> Lock(int descriptor, const std::string& path) {
  constexpr auto kWait = std::chrono::seconds(3);
  const auto start = std::chrono::steady_clock::now();
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return base::FileError(absl::StrCat(path, ": cannot lock the file"),
                             errno);
    if (std::chrono::steady_clock::now() - start > kWait) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// The process that locked the file before may have removed it in between.
bool IsAt(int descriptor, int folder, const std::string& name) {
  struct stat own, named;
  return fstat(descriptor, &own) == 0 &&
         fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

constexpr int kOpenTries = 10;

}  // namespace

absl::StatusOr<std::unique_ptr<StateFile>> StateFile::Create(
    const std::string& folder, const std::string& name, int64_t bytes) {
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0)
    return base::FileError(
        absl::StrCat(folder,
                     ": expected a folder for optimizer states, which "
                     "must exist"),
        errno);
  std::unique_ptr<StateFile> file(
      new StateFile(opened, name, absl::StrCat(folder, "/", name)));
  PARTITA_RETURN_IF_ERROR(file->Open(bytes));
  return file;
}

absl::Status StateFile::Open(int64_t bytes) {
  for (int i = 0; i < kOpenTries && !owned_; ++i)
    PARTITA_RETURN_IF_ERROR(OpenLocked());
  if (!owned_)
    return absl::FailedPreconditionError(absl::StrCat(
        path_,
        ": other processes create and remove this file all the time; "
        "give each run a folder of its own"));
  // A file that a killed process left has its old length.
  if (ftruncate(descriptor_, 0) != 0)
    return base::FileError(absl::StrCat(path_, ": cannot empty the file"),
                           errno);
  if (const int error = posix_fallocate(descriptor_, 0, bytes); error != 0)
    return base::FileError(
        absl::StrCat(path_, ": expected room for ", base::FormatBytes(bytes),
                     " of optimizer states"),
        error);
  bytes_ = bytes;
  PARTITA_ASSIGN_OR_RETURN(queue_, base::FileQueue::Make(descriptor_, path_));
  return absl::OkStatus();
}

absl::Status StateFile::CheckLength() const {
  struct stat info;
  if (fstat(descriptor_, &info) != 0)
    return base::FileError(absl::StrCat(path_, ": cannot read the length"),
                           errno);
  if (info.st_size == bytes_) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path_, ": expected ", bytes_, " bytes, but the file has ",
                   static_cast<int64_t>(info.st_size),
                   "; another process changed its length"));
}

// O_DIRECT keeps the states out of the page cache; some file systems lack it.
absl::Status StateFile::OpenLocked() {
  if (descriptor_ >= 0) close(descriptor_);
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  descriptor_ = openat(folder_, name_.c_str(), kFlags | O_DIRECT, 0600);
  if (descriptor_ < 0 && errno == EINVAL)
    descriptor_ = openat(folder_, name_.c_str(), kFlags, 0600);
  if (descriptor_ < 0)
    return base::FileError(
        absl::StrCat(path_, ": cannot create the file of optimizer states"),
        errno);
  PARTITA_ASSIGN_OR_RETURN(const bool locked, Lock(descriptor_, path_));
  if (!locked)
    return absl::FailedPreconditionError(absl::StrCat(
        path_,
        ": another process keeps its optimizer states in this file; "
        "give each run a folder of its own"));
  owned_ = IsAt(descriptor_, folder_, name_);
  return absl::OkStatus();
}

StateFile::~StateFile() {
  queue_.reset();
  if (owned_) unlinkat(folder_, name_.c_str(), 0);
  if (descriptor_ >= 0) close(descriptor_);
  close(folder_);
}

}  // namespace partita::executor
