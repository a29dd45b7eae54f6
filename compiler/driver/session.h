// The context, the diagnostics and the exit codes of the commands of `partita`.
#ifndef PARTITA_COMPILER_DRIVER_SESSION_H_
#define PARTITA_COMPILER_DRIVER_SESSION_H_

#include <string>

#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"

namespace partita::driver {

enum ExitCode {
  kSuccess = 0,
  kUserError = 1,
  kUsageError = 2,
  kInternalError = 70
};

// A context with all of Partita's dialects, which prints diagnostics to
// standard error as `error: what [at where]`.
class Session {
 public:
  Session();
  mlir::MLIRContext* context() { return &context_; }

 private:
  mlir::MLIRContext context_;
};

// Describes a location for people: a file, with line and column if they are
// known, or the name of an operation in the model. Empty if unknown.
std::string describe(mlir::Location location);

// Flushes standard output. Returns `code`. If flushing fails, e.g. on a full
// disk, prints a message and returns kUserError instead of kSuccess.
int finishOutput(int code);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_SESSION_H_
