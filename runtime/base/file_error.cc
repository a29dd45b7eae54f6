// Codes and texts of errno.
#include "runtime/base/file_error.h"

#include <errno.h>
#include <string.h>

namespace partita::base {

absl::Status FileError(const std::string& message, int error) {
  const std::string text = message + ": " + strerror(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace partita::base
