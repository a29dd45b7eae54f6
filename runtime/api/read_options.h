// Checks what callers of the C interface pass, and converts their options.
#ifndef PARTITA_RUNTIME_API_READ_OPTIONS_H_
#define PARTITA_RUNTIME_API_READ_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/api/partita.h"
#include "runtime/session/options.h"

namespace partita::api {

// InvalidArgument if `pointer` is null: "expected WHAT, found NULL".
absl::Status CheckGiven(const void* pointer, const char* what);

// Checks the first two fields of a structure of options: `size` is that of the
// library's, and `macro` initialises it.
absl::Status CheckVersion(uint32_t abi_version, uint32_t found_size,
                          size_t size, const char* type, const char* macro);

// The options of a model at `path`, without join_job and seed.
absl::StatusOr<session::SessionOptions> ReadOptions(
    const char* path, const partita_options& options);

}  // namespace partita::api

#endif  // PARTITA_RUNTIME_API_READ_OPTIONS_H_
