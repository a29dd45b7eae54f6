// Less of a model that is too large to run slowly.
#ifndef PARTITA_COMPILER_DRIVER_VERIFY_SHRINK_MODEL_H_
#define PARTITA_COMPILER_DRIVER_VERIFY_SHRINK_MODEL_H_

#include <cstdint>
#include <functional>

#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// About how many multiplications and element accesses one run of @main takes:
// the sizes of all factors of a product or convolution, the elements of
// anything else.
int64_t workOf(mlir::ModuleOp module);

// Whether the parameters of these names are treated alike.
using Alike = std::function<bool(llvm::StringRef, llvm::StringRef)>;

// Leaves out layers of an imported module: of those that repeat, one feeding
// the next, all but the first `keep`, where all parameters are alike to the
// last kept one's; what the last one gave is what the last kept one gives.
// Layers are the functions that @main calls and what repeats in it, which is
// written out again, at the places of the first; @main keeps its arguments,
// some without uses. Returns how many layers went; 0 where none repeat.
mlir::FailureOr<int64_t> dropRepeatedLayers(mlir::ModuleOp module, int64_t keep,
                                            const Alike& alike);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_SHRINK_MODEL_H_
