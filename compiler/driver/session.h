// What the commands of `partita` share: a context, and how diagnostics look.
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

// A context that knows everything of ours and prints diagnostics to standard
// error as `error: what [at where]`.
class Session {
 public:
  Session();
  mlir::MLIRContext* context() { return &context_; }

 private:
  mlir::MLIRContext context_;
};

// A place as a person would name it: a file, with line and column where they
// are known, or the name of an operation in the model. Empty if unknown.
std::string describe(mlir::Location location);

// Writes what is left to write to standard output. Returns `code`, or
// kUserError after a message where that fails, as on a full disk.
int finishOutput(int code);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_SESSION_H_
