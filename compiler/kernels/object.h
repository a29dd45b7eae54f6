// From generated functions to a shared object.
#ifndef PARTITA_COMPILER_KERNELS_OBJECT_H_
#define PARTITA_COMPILER_KERNELS_OBJECT_H_

#include <string>

#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace partita::kernels {

struct ObjectOptions {
  std::string cpu = "host";  // a name LLVM knows, or "host"
  std::string features;  // in LLVM's notation, e.g. "+avx512f"; if empty and
                         // cpu is "host", the host's
  int opt_level = 3;
};

// Lowers the functions that generateKernel appended to `target` to an object
// file, and returns its bytes. Consumes `target`. Emits a diagnostic on
// failure. `change` may modify the module before it is optimised.
mlir::FailureOr<std::string> compileToObject(
    mlir::ModuleOp target, const ObjectOptions& options = {},
    llvm::function_ref<void(llvm::Module&)> change = nullptr);

// Links an object file into a shared object and returns its bytes. The result
// needs libm and libc. Uses files in the temporary folder. Emits a diagnostic
// at `loc` on failure.
mlir::FailureOr<std::string> linkSharedObject(mlir::Location loc,
                                              llvm::StringRef object);

// Registers the translations to LLVM IR that the lowering needs, in addition to
// generateKernel's dialects.
void registerObjectTranslations(mlir::DialectRegistry& registry);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_OBJECT_H_
