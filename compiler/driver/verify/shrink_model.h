// Removes repeated layers of a model that is too large for slow references.
#ifndef PARTITA_COMPILER_DRIVER_VERIFY_SHRINK_MODEL_H_
#define PARTITA_COMPILER_DRIVER_VERIFY_SHRINK_MODEL_H_

#include <cstdint>
#include <functional>

#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Approximate number of multiplications and element accesses of one run of
// @main: the sizes of all factors of a product or convolution multiplied, and
// the number of elements for other operations.
int64_t workOf(mlir::ModuleOp module);

// True if the plan treats the parameters of these two names alike.
using Alike = std::function<bool(llvm::StringRef, llvm::StringRef)>;

// Kinds of layers to remove from: all, or the one that @main calls most often.
enum class Kinds { kAll, kMostCalled };

// Removes layers of an imported module. Of repeated layers, each feeding the
// next, it removes all after the first `keep` whose parameters are all alike to
// the last kept layer's. The last kept layer's results replace the removed
// layer's. Layers are the functions that @main calls, and repeated code in
// @main, which is inlined again. @main keeps its arguments, some without uses.
// Returns the number of removed layers; 0 if none repeat.
mlir::FailureOr<int64_t> dropRepeatedLayers(mlir::ModuleOp module, int64_t keep,
                                            const Alike& alike,
                                            Kinds kinds = Kinds::kAll);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_SHRINK_MODEL_H_
