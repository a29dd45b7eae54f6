// Early return on errors: PARTITA_RETURN_IF_ERROR(status),
// PARTITA_ASSIGN_OR_RETURN(lhs, status_or).
#ifndef PARTITA_RUNTIME_BASE_STATUS_MACROS_H_
#define PARTITA_RUNTIME_BASE_STATUS_MACROS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define PARTITA_RETURN_IF_ERROR(expression)          \
  do {                                               \
    absl::Status partita_status = (expression);      \
    if (!partita_status.ok()) return partita_status; \
  } while (false)

#define PARTITA_CONCAT_INNER(a, b) a##b
#define PARTITA_CONCAT(a, b) PARTITA_CONCAT_INNER(a, b)

#define PARTITA_ASSIGN_OR_RETURN(lhs, expression)                             \
  PARTITA_ASSIGN_OR_RETURN_IMPL(PARTITA_CONCAT(partita_status_or_, __LINE__), \
                                lhs, expression)
#define PARTITA_ASSIGN_OR_RETURN_IMPL(temporary, lhs, expression) \
  auto temporary = (expression);                                  \
  if (!temporary.ok()) return temporary.status();                 \
  lhs = std::move(temporary).value()

#endif  // PARTITA_RUNTIME_BASE_STATUS_MACROS_H_
