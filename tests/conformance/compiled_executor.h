// Executor of backend tests that uses the whole compiler and the runtime.
#ifndef PARTITA_TESTS_CONFORMANCE_COMPILED_EXECUTOR_H_
#define PARTITA_TESTS_CONFORMANCE_COMPILED_EXECUTOR_H_

#include <string>

#include "tests/conformance/onnx_backend.h"

namespace partita::conformance {

// Compiles each module to an artifact in `folder`, loads it on the CPU and runs
// it. Prints the reason for a failure to stderr.
Executor compiledExecutor(const std::string& folder);

// Divides each module that has a mesh over one thread per device of it, by its
// own shardings, and compiles and runs it so. Fails for a module without one.
Executor dividedExecutor(const std::string& folder);

// Element types of the module that programs cannot represent, as `type f8E5M2`.
std::vector<std::string> compilerLacks(mlir::ModuleOp module);

}  // namespace partita::conformance

#endif  // PARTITA_TESTS_CONFORMANCE_COMPILED_EXECUTOR_H_
