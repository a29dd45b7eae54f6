// Statuses of failed system calls on files.
#ifndef PARTITA_RUNTIME_BASE_FILE_ERROR_H_
#define PARTITA_RUNTIME_BASE_FILE_ERROR_H_

#include <string>

#include "absl/status/status.h"

namespace partita::base {

// Status "MESSAGE: CAUSE" with the code for `error`, an errno: NotFound,
// PermissionDenied, ResourceExhausted (disk full, quota, file too large), else
// Unavailable.
absl::Status FileError(const std::string& message, int error);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_FILE_ERROR_H_
