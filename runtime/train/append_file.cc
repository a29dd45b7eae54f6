// Uses O_APPEND, and truncates a partly written record.
#include "runtime/train/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace partita::train {
namespace {

absl::Status Failed(const std::string& path, const char* what, int error) {
  const std::string message =
      absl::StrCat(path, ": cannot ", what, ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(message)
                         : absl::UnavailableError(message);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Open(
    const std::string& path) {
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) return Failed(path, "open it for writing", errno);
  return std::unique_ptr<AppendFile>(new AppendFile(path, descriptor));
}

AppendFile::~AppendFile() { close(descriptor_); }

absl::Status AppendFile::Append(std::string_view record) {
  struct stat before;
  if (fstat(descriptor_, &before) != 0)
    return Failed(path_, "read its size", errno);
  size_t done = 0;
  while (done < record.size()) {
    const ssize_t count =
        write(descriptor_, record.data() + done, record.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = count < 0 ? errno : EIO;
      // Pipes and devices cannot be truncated, and need not be.
      if (done > 0) (void)!ftruncate(descriptor_, before.st_size);
      return Failed(path_, "write", error);
    }
    done += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

}  // namespace partita::train
