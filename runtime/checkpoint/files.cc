// System calls of checkpoints, with errors that name the file.
#include "runtime/checkpoint/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/checksum.h"
#include "runtime/base/file_error.h"
#include "runtime/base/status_macros.h"

namespace partita::checkpoint {

using base::FileError;

absl::StatusOr<PartFile> PartFile::Open(const std::string& path,
                                        int64_t bytes) {
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return FileError(absl::StrCat(path, ": cannot create the file"), errno);
  PartFile file(path, descriptor);
  if (ftruncate(descriptor, bytes) != 0)
    return FileError(
        absl::StrCat(path, ": cannot make a file of ", bytes, " bytes"), errno);
  return file;
}

PartFile::PartFile(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

PartFile::~PartFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status PartFile::Write(int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    // Linux writes at most 2 GiB at a time.
    const size_t chunk = std::min(bytes.size(), size_t{1} << 30);
    const ssize_t written = pwrite(descriptor_, bytes.data(), chunk, offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      return FileError(absl::StrCat(path_, ": cannot write ", bytes.size(),
                                    " bytes at byte ", offset),
                       written < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

absl::Status PartFile::Sync() {
  if (fsync(descriptor_) == 0) return absl::OkStatus();
  return FileError(absl::StrCat(path_, ": cannot store the file"), errno);
}

absl::Status WriteSmallFile(const std::string& path, std::string_view bytes) {
  PARTITA_ASSIGN_OR_RETURN(
      PartFile file, PartFile::Open(path, static_cast<int64_t>(bytes.size())));
  PARTITA_RETURN_IF_ERROR(file.Write(0, bytes));
  return file.Sync();
}

namespace {

// Calls visit(piece) for the file's bytes in order.
template <typename Visit>
absl::Status ForEachPiece(const std::string& path, const Visit& visit) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return FileError(absl::StrCat(path, ": cannot open the file"), errno);
  std::vector<char> piece(size_t{1} << 20);
  ssize_t count = 0;
  do {
    count = read(descriptor, piece.data(), piece.size());
    if (count > 0)
      visit(std::string_view(piece.data(), static_cast<size_t>(count)));
  } while (count > 0 || (count < 0 && errno == EINTR));
  const int error = errno;
  close(descriptor);
  if (count < 0)
    return FileError(absl::StrCat(path, ": cannot read the file"), error);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  std::string bytes;
  PARTITA_RETURN_IF_ERROR(
      ForEachPiece(path, [&](std::string_view piece) { bytes += piece; }));
  return bytes;
}

absl::StatusOr<FileRecord> ChecksumFile(const std::string& path) {
  FileRecord record;
  PARTITA_RETURN_IF_ERROR(ForEachPiece(path, [&](std::string_view piece) {
    record.bytes += static_cast<int64_t>(piece.size());
    record.crc32 = base::Crc32(piece, record.crc32);
  }));
  return record;
}

absl::Status SyncFolder(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return FileError(absl::StrCat(path, ": cannot open the folder"), errno);
  // Some file systems cannot sync folders, and need not.
  const int result = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  if (result != 0 && error != EINVAL)
    return FileError(absl::StrCat(path, ": cannot store the folder"), error);
  return absl::OkStatus();
}

absl::Status MoveIntoPlace(const std::string& from, const std::string& path) {
  if (rename(from.c_str(), path.c_str()) == 0) return absl::OkStatus();
  if (errno == ENOTEMPTY || errno == EEXIST) {
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(),
                  RENAME_EXCHANGE) == 0)
      return absl::OkStatus();
    const std::string aside = from + "-aside";
    if (rename(path.c_str(), aside.c_str()) == 0 &&
        rename(from.c_str(), path.c_str()) == 0 &&
        rename(aside.c_str(), from.c_str()) == 0)
      return absl::OkStatus();
  }
  return FileError(
      absl::StrCat(path, ": cannot move the checkpoint into place"), errno);
}

}  // namespace partita::checkpoint
