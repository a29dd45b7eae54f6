// Values of index arithmetic along one dimension, without computing tensors.
#ifndef PARTITA_FRONTENDS_ONNX_INDEX_VALUES_H_
#define PARTITA_FRONTENDS_ONNX_INDEX_VALUES_H_

#include <optional>
#include <vector>

#include "frontends/onnx/builder_names.h"

namespace partita::onnx {

// An index of one dimension: a number, the running one, or any. The elements of
// a value must be the same at all indices of a dimension with `kAny`.
constexpr int64_t kRunning = -1, kAny = -2;

// The placeholder of a mask's chosen indices [rank, elements], and the mask's
// shape.
struct Placeholder {
  mlir::Value value;
  Shape grid;

  int64_t count() const { return builder::product(grid); }
};

// Returns the `count` integers of `value` at this index, where the running
// dimension counts from 0. Nothing if they depend on more than constants and
// the placeholder.
std::optional<std::vector<int64_t>> indexValues(mlir::Value value, Dims index,
                                                int64_t count,
                                                const Placeholder& placeholder);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_INDEX_VALUES_H_
