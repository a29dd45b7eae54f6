// Kernels that copy, fill and reduce parts of tensors (comm::Box), for exchange
// among GPUs. Each thread handles one element or one unit of bytes.
#ifndef PARTITA_RUNTIME_CUDA_BOX_KERNELS_H_
#define PARTITA_RUNTIME_CUDA_BOX_KERNELS_H_

#include "runtime/comm/reduction.h"
#include "runtime/cuda/kernel_code.h"

namespace partita::cuda {

// Arguments of a copy. The comm::Box is in units of `unit` bytes, a power of
// two up to 16. Thread i copies one unit.
struct CopyBoxArgs {
  const char* from;
  char* to;
  Int count, units;  // units of all runs, units of one run
  Int counts[3], from_strides[3], to_strides[3];  // strides in bytes
  int unit;
};

// Arguments of a gather of rows: row r of `to` becomes row index[r] of `from`,
// or 0 if that is negative. Thread i copies one unit of `unit` bytes, a power
// of two up to 16.
struct GatherRowsArgs {
  const char* from;
  char* to;
  const Int* index;
  Int count, units;  // units of all rows, units of one row
  int unit;
};

// Arguments of a fill of the elements of all runs of a box. Thread i writes one
// element.
struct FillBoxArgs {
  char* to;
  Int count, elements;  // elements of all runs, elements of one run
  Int counts[3], to_strides[3];
  unsigned long long value;  // the element's bytes, the first ones lowest
  int element_bytes;
};

// Returns the index within its run of unit i, and the indices of the run in
// `at`.
PARTITA_KERNEL_CODE Int SplitBox(const Int (&counts)[3], Int units, Int i,
                                 Int (&at)[3]) {
  const Int unit = i % units;
  i /= units;
  for (int d = 2; d >= 0; --d) at[d] = i % counts[d], i /= counts[d];
  return unit;
}

// Copies `unit` bytes, aligned to as many.
PARTITA_KERNEL_CODE void CopyUnit(const char* from, char* to, int unit) {
  PARTITA_KERNEL_READS(from, static_cast<unsigned long>(unit));
  PARTITA_KERNEL_WRITES(to, static_cast<unsigned long>(unit));
  struct alignas(16) Wide {
    unsigned long long halves[2];
  };
  switch (unit) {
    case 16:
      *reinterpret_cast<Wide*>(to) = *reinterpret_cast<const Wide*>(from);
      return;
    case 8:
      *reinterpret_cast<Int*>(to) = *reinterpret_cast<const Int*>(from);
      return;
    case 4:
      *reinterpret_cast<int*>(to) = *reinterpret_cast<const int*>(from);
      return;
    case 2:
      *reinterpret_cast<short*>(to) = *reinterpret_cast<const short*>(from);
      return;
    default:
      *to = *from;
  }
}

PARTITA_KERNEL_CODE void GatherRowsUnit(const GatherRowsArgs& a, Int i) {
  if (i >= a.count) return;
  const Int offset = i % a.units * a.unit, row_bytes = a.units * a.unit;
  PARTITA_KERNEL_READS(a.index + i / a.units, sizeof(Int));
  const Int source = a.index[i / a.units];
  char* to = a.to + i / a.units * row_bytes + offset;
  if (source >= 0)
    return CopyUnit(a.from + source * row_bytes + offset, to, a.unit);
  PARTITA_KERNEL_WRITES(to, static_cast<unsigned long>(a.unit));
  for (int b = 0; b < a.unit; ++b) to[b] = 0;
}

PARTITA_KERNEL_CODE void CopyBoxUnit(const CopyBoxArgs& a, Int i) {
  if (i >= a.count) return;
  Int at[3];
  const Int offset = SplitBox(a.counts, a.units, i, at) * a.unit;
  const char* from = a.from + offset;
  char* to = a.to + offset;
  for (int d = 0; d < 3; ++d) {
    from += at[d] * a.from_strides[d];
    to += at[d] * a.to_strides[d];
  }
  CopyUnit(from, to, a.unit);
}

PARTITA_KERNEL_CODE void FillBoxElement(const FillBoxArgs& a, Int i) {
  if (i >= a.count) return;
  Int at[3];
  char* to = a.to + SplitBox(a.counts, a.elements, i, at) * a.element_bytes;
  for (int d = 0; d < 3; ++d) to += at[d] * a.to_strides[d];
  PARTITA_KERNEL_WRITES(to, static_cast<unsigned long>(a.element_bytes));
  for (int b = 0; b < a.element_bytes; ++b)
    to[b] = static_cast<char>(a.value >> (8 * b));
}

// The values of base::DType.
enum class ElementType : int {
  kF32 = 0,
  kF64,
  kF16,
  kBF16,
  kI1,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF8E4M3,
  kF8E5M2
};
// Maximum number of tensors that one launch combines: their addresses are
// kernel parameters.
constexpr int kMaxMembers = 64;

// Arguments of a reduction of the elements of all runs of a box. Thread i
// combines element i of all inputs, in input order, and writes the result to
// all outputs.
struct ReduceBoxArgs {
  const char* inputs[kMaxMembers];
  char* outputs[kMaxMembers];
  Int count, elements;  // elements of all runs, elements of one run
  Int counts[3], from_strides[3], to_strides[3];  // strides in bytes
  int input_count, output_count, element_bytes;
  ElementType type;
  comm::Reduction reduction;
};

// Combines two numbers. Integer sums and products wrap around.
template <typename T>
PARTITA_KERNEL_CODE T CombineNumbers(comm::Reduction reduction, T a, T b) {
  switch (reduction) {
    case comm::Reduction::kSum:
      return static_cast<T>(a + b);
    case comm::Reduction::kProd:
      return static_cast<T>(a * b);
    case comm::Reduction::kMax:
      return a > b || a != a ? a : b;
    case comm::Reduction::kMin:
      return a < b || a != a ? a : b;
    case comm::Reduction::kAny:
      return static_cast<T>(a != T(0) || b != T(0));
    case comm::Reduction::kAll:
      break;
  }
  return static_cast<T>(a != T(0) && b != T(0));
}

// Reduces in type T. Sums and products are computed in `Wide`, which holds
// every T and whose overflow is defined.
template <typename T, typename Wide>
PARTITA_KERNEL_CODE void ReduceNumbers(const ReduceBoxArgs& a, Int from,
                                       Int to) {
  const bool adds = a.reduction == comm::Reduction::kSum ||
                    a.reduction == comm::Reduction::kProd;
  T result = T(0);
  for (int j = 0; j < a.input_count; ++j) {
    const T* const input = reinterpret_cast<const T*>(a.inputs[j] + from);
    PARTITA_KERNEL_READS(input, sizeof(T));
    if (j == 0)
      result = *input;
    else if (adds)
      result = static_cast<T>(CombineNumbers<Wide>(
          a.reduction, static_cast<Wide>(result), static_cast<Wide>(*input)));
    else
      result = CombineNumbers<T>(a.reduction, result, *input);
  }
  for (int j = 0; j < a.output_count; ++j) {
    T* const output = reinterpret_cast<T*>(a.outputs[j] + to);
    PARTITA_KERNEL_WRITES(output, sizeof(T));
    *output = result;
  }
}

// Reduces floats in f32, rounding 16-bit results once.
PARTITA_KERNEL_CODE void ReduceFloats(const ReduceBoxArgs& a, KernelType type,
                                      Int from, Int to) {
  float result = 0;
  for (int j = 0; j < a.input_count; ++j) {
    const float next = Load(type, a.inputs[j] + from, 0);
    result = j == 0 ? next : CombineNumbers<float>(a.reduction, result, next);
  }
  for (int j = 0; j < a.output_count; ++j)
    Store(type, a.outputs[j] + to, 0, result);
}

PARTITA_KERNEL_CODE void ReduceBoxElement(const ReduceBoxArgs& a, Int i) {
  if (i >= a.count) return;
  using Bits = unsigned long long;
  Int at[3];
  Int from = SplitBox(a.counts, a.elements, i, at) * a.element_bytes;
  Int to = from;
  for (int d = 0; d < 3; ++d) {
    from += at[d] * a.from_strides[d];
    to += at[d] * a.to_strides[d];
  }
  switch (a.type) {
    case ElementType::kF32:
      return ReduceFloats(a, KernelType::kF32, from, to);
    case ElementType::kF16:
      return ReduceFloats(a, KernelType::kF16, from, to);
    case ElementType::kBF16:
      return ReduceFloats(a, KernelType::kBF16, from, to);
    case ElementType::kF64:
      return ReduceNumbers<double, double>(a, from, to);
    case ElementType::kI8:
      return ReduceNumbers<signed char, Bits>(a, from, to);
    case ElementType::kI16:
      return ReduceNumbers<short, Bits>(a, from, to);
    case ElementType::kI32:
      return ReduceNumbers<int, Bits>(a, from, to);
    case ElementType::kI64:
      return ReduceNumbers<Int, Bits>(a, from, to);
    case ElementType::kI1:
    case ElementType::kU8:
      return ReduceNumbers<unsigned char, Bits>(a, from, to);
    case ElementType::kU16:
      return ReduceNumbers<unsigned short, Bits>(a, from, to);
    case ElementType::kU32:
      return ReduceNumbers<unsigned, Bits>(a, from, to);
    case ElementType::kU64:
      return ReduceNumbers<Bits, Bits>(a, from, to);
    case ElementType::kF8E4M3:  // programs with such reductions are refused
    case ElementType::kF8E5M2:
      return;
  }
}

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_BOX_KERNELS_H_
