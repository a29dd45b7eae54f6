// Gives weights of @main the type i8, and a scale beside each.
#ifndef PARTITA_COMPILER_QUANTIZE_USE_INTEGERS_H_
#define PARTITA_COMPILER_QUANTIZE_USE_INTEGERS_H_

#include <map>
#include <vector>

#include "compiler/quantize/find_weights.h"

namespace partita::quantize {

// Changes weights without obstacles to buffers of i8. Each gets a new argument
// NAME_scale, a buffer of f32 with the sizes of its channels; functions read
// scale * integer. Layers that share a function get functions of their own if
// only some of them are in `weights`. Returns the argument of each scale, by
// the argument of its weight. The caller sets `nn.source`.
std::map<unsigned, unsigned> useIntegers(mlir::func::FuncOp main,
                                         const std::vector<Weight>& weights);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_USE_INTEGERS_H_
