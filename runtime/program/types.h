// Converts the program's types to runtime/base types.
#ifndef PARTITA_RUNTIME_PROGRAM_TYPES_H_
#define PARTITA_RUNTIME_PROGRAM_TYPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/program/program_generated.h"
#include "runtime/program/target.h"

namespace partita::program {

static_assert(static_cast<int>(DType::MAX) + 1 == base::kDTypeCount,
              "program.fbs and base/dtype.h must agree");
static_assert(static_cast<int>(DType::f32) ==
              static_cast<int>(base::DType::kF32));
static_assert(static_cast<int>(DType::bf16) ==
              static_cast<int>(base::DType::kBF16));
static_assert(static_cast<int>(DType::i1) ==
              static_cast<int>(base::DType::kI1));
static_assert(static_cast<int>(DType::i64) ==
              static_cast<int>(base::DType::kI64));
static_assert(static_cast<int>(DType::u64) ==
              static_cast<int>(base::DType::kU64));
static_assert(static_cast<int>(DType::f8e5m2) ==
              static_cast<int>(base::DType::kF8E5M2));

inline base::DType ToBase(DType dtype) {
  return static_cast<base::DType>(dtype);
}
inline DType FromBase(base::DType dtype) { return static_cast<DType>(dtype); }

inline std::vector<int64_t> ToVector(
    const flatbuffers::Vector<int64_t>* values) {
  if (values == nullptr) return {};
  return std::vector<int64_t>(values->begin(), values->end());
}

inline std::vector<int64_t> ShapeOf(const TensorType& type) {
  return ToVector(type.shape());
}

// The model's shape of the whole tensor.
inline std::vector<int64_t> WholeShape(const Parameter& parameter) {
  if (parameter.model_shape() != nullptr)
    return ToVector(parameter.model_shape());
  return parameter.shard() != nullptr ? ToVector(parameter.shard()->shape())
                                      : ShapeOf(*parameter.type());
}

// Only for types that passed ValidateProgram.
inline int64_t BytesOf(const TensorType& type) {
  return *base::ByteCount(ToBase(type.dtype()), ShapeOf(type));
}

// Peak bytes of the device: all rows except host memory and rows that are part
// of others.
inline int64_t TotalOf(const MemoryTable& table) {
  return table.parameters() + table.states() + table.gradients() +
         table.activations() + table.communication() + table.derived() +
         table.ports() + table.scratch() + table.gaps();
}

// The text of the program's target; "cpu" if the program has none.
inline std::string TargetOf(const Program& program) {
  return program.target() == nullptr ? kCpuTarget : program.target()->str();
}

// True if the program's kernels are for GPUs.
inline bool IsForGpus(const Program& program) {
  return IsGpuTarget(TargetOf(program));
}

// True if the elements are aligned as the processor expects, which the
// flatbuffers verifier does not check, or if the vector is absent.
template <typename T>
bool IsAligned(const flatbuffers::Vector<T>* values) {
  return values == nullptr ||
         reinterpret_cast<uintptr_t>(values->Data()) % alignof(int64_t) == 0;
}

// Number of elements of a vector that may be absent.
template <typename T>
int64_t SizeOrZero(const flatbuffers::Vector<T>* values) {
  return values == nullptr ? 0 : static_cast<int64_t>(values->size());
}

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_TYPES_H_
