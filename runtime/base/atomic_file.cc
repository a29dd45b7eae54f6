// Atomic replacement of files: temporary file, fsync, rename, fsync of the
// folder.
#include "runtime/base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_error.h"
#include "runtime/base/status_macros.h"

namespace partita::base {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(
    const std::string& path) {
  static std::atomic<int> counter{0};
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a file to write, found ",
                     S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe"));
  }
  const std::string temporary =
      absl::StrCat(path, ".tmp-", getpid(), "-", counter.fetch_add(1));
  const int descriptor =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    const int error = errno;
    return FileError(
        absl::StrCat(path, ": cannot create a file in ", FolderOf(path)),
        error);
  }
  return std::unique_ptr<AtomicFile>(
      new AtomicFile(path, temporary, descriptor));
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int descriptor)
    : path_(std::move(path)),
      temporary_(std::move(temporary)),
      descriptor_(descriptor) {}

AtomicFile::~AtomicFile() { Discard(); }

void AtomicFile::Discard() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
  descriptor_ = -1;
}

absl::Status AtomicFile::Fail(const std::string& what, int error) {
  Discard();
  return FileError(
      absl::StrCat(path_, ": cannot ", what, " (nothing was written)"), error);
}

absl::Status AtomicFile::Write(int64_t offset, std::string_view bytes) {
  if (descriptor_ < 0)
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": an earlier write failed"));
  const size_t total = bytes.size();
  const int64_t begin = offset;
  while (!bytes.empty()) {
    // Linux writes at most 2 GiB at a time.
    const size_t chunk = std::min(bytes.size(), size_t{1} << 30);
    const ssize_t written = pwrite(descriptor_, bytes.data(), chunk, offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return Fail(absl::StrCat("write ", total, " bytes at byte ", begin),
                  written < 0 ? errno : ENOSPC);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Append(std::string_view bytes) {
  PARTITA_RETURN_IF_ERROR(Write(size_, bytes));
  size_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status AtomicFile::WriteAt(int64_t offset, std::string_view bytes) {
  if (offset < 0 || offset + static_cast<int64_t>(bytes.size()) > size_) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": bytes to overwrite lie outside what was appended"));
  }
  return Write(offset, bytes);
}

absl::Status AtomicFile::Commit() {
  if (descriptor_ < 0)
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": an earlier write failed"));
  if (fsync(descriptor_) != 0)
    return Fail(absl::StrCat("store ", size_, " bytes"), errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    return Fail("move the finished file into place", errno);
  close(descriptor_);
  descriptor_ = -1;
  // The rename itself survives a power cut only once the folder is stored too.
  const int folder =
      open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view bytes) {
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file,
                           AtomicFile::Create(path));
  PARTITA_RETURN_IF_ERROR(file->Append(bytes));
  return file->Commit();
}

}  // namespace partita::base
