// Describes how a kernel copies boxes of an argument to shared memory.
#ifndef PARTITA_COMPILER_KERNELS_TENSOR_MAP_H_
#define PARTITA_COMPILER_KERNELS_TENSOR_MAP_H_

#include <cstdint>
#include <vector>

namespace partita::kernels {

// A tensor inside an argument, outermost dimension first; elements of the last
// dimension are contiguous. Where a box extends past the tensor, it holds
// zeros. Boxes are swizzled by 128 bytes (Tile::swizzled in emit_fragments.h).
struct TensorMap {
  int64_t argument = 0;
  int64_t offset = 0;  // bytes to the first element
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // bytes, of all dimensions but the last
  std::vector<int64_t> box;      // elements
};

// Size of a map as a kernel's parameter.
inline constexpr int64_t kTensorMapBytes = 128;

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_TENSOR_MAP_H_
