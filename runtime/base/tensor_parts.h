// Tensors that are stored in parts, one per index of dimension 0.
#ifndef PARTITA_RUNTIME_BASE_TENSOR_PARTS_H_
#define PARTITA_RUNTIME_BASE_TENSOR_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/tensor.h"

namespace partita::base {

// Replaces the first `*` of `name` by `index`: part 3 of "experts.*.up.weight"
// is "experts.3.up.weight". A name without `*` gets the index at its end.
inline std::string PartName(const std::string& name, int64_t index) {
  const size_t star = name.find('*');
  if (star == std::string::npos) return name + "." + std::to_string(index);
  return name.substr(0, star) + std::to_string(index) + name.substr(star + 1);
}

// The parts of a tensor, which must have dimensions, in order.
inline std::vector<TensorSpec> PartsOf(const TensorSpec& whole) {
  const int64_t count = whole.shape[0];
  std::vector<TensorSpec> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back({PartName(whole.name, i),
                     whole.dtype,
                     {whole.shape.begin() + 1, whole.shape.end()},
                     whole.bytes / count});
  return parts;
}

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_TENSOR_PARTS_H_
