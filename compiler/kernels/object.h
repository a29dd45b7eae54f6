// From generated functions to a shared object.
#ifndef PARTITA_COMPILER_KERNELS_OBJECT_H_
#define PARTITA_COMPILER_KERNELS_OBJECT_H_

#include <string>

#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

struct ObjectOptions {
  std::string cpu = "host";  // a name LLVM knows, or "host"
  std::string features;  // LLVM's, such as "+avx512f"; the host's own if cpu is
                         // "host" and this is empty
  int opt_level = 3;
};

// Lowers what generateKernel appended to `target` (which it consumes) to the
// bytes of an object file. Emits a diagnostic where it fails.
mlir::FailureOr<std::string> compileToObject(mlir::ModuleOp target,
                                             const ObjectOptions& options = {});

// Links an object file into a shared object, whose bytes it returns; the object
// needs libm and libc. Works on files in the folder for temporary ones; emits a
// diagnostic at `loc` where that fails.
mlir::FailureOr<std::string> linkSharedObject(mlir::Location loc,
                                              llvm::StringRef object);

// Registers what the lowering needs beyond generateKernel's dialects:
// translations to LLVM IR.
void registerObjectTranslations(mlir::DialectRegistry& registry);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_OBJECT_H_
