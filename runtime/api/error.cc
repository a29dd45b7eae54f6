// Messages are stored per thread, since sessions of several threads may fail at
// once.
#include "runtime/api/error.h"

#include <string>

namespace partita::api {
namespace {

std::string& Message() {
  thread_local std::string message;
  return message;
}

partita_status CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return PARTITA_OK;
    case absl::StatusCode::kNotFound:
      return PARTITA_NOT_FOUND;
    case absl::StatusCode::kResourceExhausted:
      return PARTITA_NO_MEMORY;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
      return PARTITA_UNAVAILABLE;
    case absl::StatusCode::kDataLoss:
      return PARTITA_DATA_LOSS;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return PARTITA_INTERNAL;
    default:
      return PARTITA_INVALID;
  }
}

}  // namespace

partita_status Report(const absl::Status& status) {
  if (!status.ok()) Message() = std::string(status.message());
  return CodeOf(status);
}

}  // namespace partita::api

const char* partita_last_error(void) { return partita::api::Message().c_str(); }
