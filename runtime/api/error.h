// Converts statuses to the C interface.
#ifndef PARTITA_RUNTIME_API_ERROR_H_
#define PARTITA_RUNTIME_API_ERROR_H_

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "runtime/api/partita.h"

namespace partita::api {

// Stores the message for partita_last_error of this thread.
partita_status Report(const absl::Status& status);

// Runs `work`, a function that returns absl::Status. Converts exceptions, which
// only the standard library throws, to statuses.
template <typename Work>
partita_status Guard(const Work& work) {
  try {
    return Report(work());
  } catch (const std::bad_alloc&) {
    return Report(absl::ResourceExhaustedError(
        "expected more memory on the host, found none left"));
  } catch (const std::exception& problem) {
    return Report(absl::InternalError(problem.what()));
  }
}

}  // namespace partita::api

#endif  // PARTITA_RUNTIME_API_ERROR_H_
