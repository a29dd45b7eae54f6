// Gives weights of @main a type of 8 bits, and scales beside each.
#ifndef PARTITA_COMPILER_QUANTIZE_USE_INTEGERS_H_
#define PARTITA_COMPILER_QUANTIZE_USE_INTEGERS_H_

#include <map>
#include <optional>
#include <vector>

#include "compiler/quantize/find_weights.h"

namespace partita::quantize {

// Arguments beside a weight.
struct StepArguments {
  unsigned scale = 0;
  std::optional<unsigned> zero;
};

// Changes weights without obstacles to buffers of i8, or of f8E4M3FN. Each gets
// a new argument NAME_scale, a buffer of f32 with the sizes of its channels;
// functions read scale * integer, or scale * float. Weights with a group become
// packed (use_groups.h), with a scale, and perhaps NAME_zero of i8, per group.
// Layers that share a function get functions of their own if only some of them
// are in `weights`. Returns the new arguments by the argument of their weight.
// The caller sets `nn.source`.
std::map<unsigned, StepArguments> useIntegers(
    mlir::func::FuncOp main, const std::vector<Weight>& weights);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_USE_INTEGERS_H_
