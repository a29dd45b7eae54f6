// Gives a model the integers of a folder that partita quantize wrote, or of a
// checkpoint of a model with such integers.
#ifndef PARTITA_COMPILER_QUANTIZE_TAKE_INTEGERS_H_
#define PARTITA_COMPILER_QUANTIZE_TAKE_INTEGERS_H_

#include <string>

#include "mlir/IR/BuiltinOps.h"

namespace partita::quantize {

// Changes weights of f32 whose names have integers in the folder's
// model.safetensors, or in the files of a checkpoint, to these integers and
// their scales, with sources in these files. The model may have other sizes
// than the quantized one, or a cache. Does nothing if the files are
// absent or have no integers. Fails, after a diagnostic, if the model cannot
// read them as it reads the weight, or if the folder has ranges of activations.
mlir::LogicalResult takeIntegers(mlir::ModuleOp module,
                                 const std::string& folder);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_TAKE_INTEGERS_H_
