// Reduces through a stack block that stays in the first-level cache: memory is
// read once per input and written once per output.
#include "runtime/comm/reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace partita::comm {
namespace {

using base::DType;

// Measured: larger blocks leave the first-level cache, smaller ones cost
// restarts.
constexpr int64_t kBlockBytes = 2048;
// Above this size, outputs bypass the caches, since they will not be read from
// one.
constexpr int64_t kStreamBytes = 16 << 20;

template <typename T>
T Combine(Reduction reduction, T a, T b) {
  using Wrap = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                  std::common_type<T>>;
  using U = typename Wrap::type;
  switch (reduction) {
    case Reduction::kSum:
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    case Reduction::kProd:
      // Small types would be multiplied as int, which may overflow.
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
      return static_cast<T>(a * b);
    case Reduction::kMax:
      return a > b || a != a ? a : b;
    case Reduction::kMin:
      return a < b || a != a ? a : b;
    case Reduction::kAny:
      return static_cast<T>((a != T(0)) | (b != T(0)));
    case Reduction::kAll:
      break;
  }
  return static_cast<T>((a != T(0)) & (b != T(0)));
}

// `block` may be `a`.
template <Reduction kReduction, typename T>
void CombineBlock(T* block, const T* a, const T* __restrict b, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    block[i] = Combine<T>(kReduction, a[i], b[i]);
}

template <typename T>
using Combiner = void (*)(T*, const T*, const T*, int64_t);

template <typename T>
Combiner<T> CombinerOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return &CombineBlock<Reduction::kSum, T>;
    case Reduction::kProd:
      return &CombineBlock<Reduction::kProd, T>;
    case Reduction::kMax:
      return &CombineBlock<Reduction::kMax, T>;
    case Reduction::kMin:
      return &CombineBlock<Reduction::kMin, T>;
    case Reduction::kAny:
      return &CombineBlock<Reduction::kAny, T>;
    case Reduction::kAll:
      break;
  }
  return &CombineBlock<Reduction::kAll, T>;
}

// Writes past the caches: lines need not be fetched before they are
// overwritten, and other cached data stays. Call Fence() afterwards.
void Stream(char* target, const char* source, size_t bytes) {
  using Vector = float __attribute__((vector_size(16)));
  if (reinterpret_cast<uintptr_t>(target) % sizeof(Vector) != 0 ||
      reinterpret_cast<uintptr_t>(source) % sizeof(Vector) != 0) {
    std::memcpy(target, source, bytes);
    return;
  }
  const size_t whole = bytes / sizeof(Vector) * sizeof(Vector);
  for (size_t i = 0; i < whole; i += sizeof(Vector)) {
    __builtin_nontemporal_store(*reinterpret_cast<const Vector*>(source + i),
                                reinterpret_cast<Vector*>(target + i));
  }
  std::memcpy(target + whole, source + whole, bytes - whole);
}

void Fence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

template <typename T>
void ReduceAs(Reduction reduction, const std::vector<const char*>& inputs,
              const std::vector<char*>& outputs, int64_t count) {
  constexpr int64_t kBlock = kBlockBytes / static_cast<int64_t>(sizeof(T));
  alignas(64) T block[kBlock];
  const Combiner<T> combine = CombinerOf<T>(reduction);
  const bool stream = count * static_cast<int64_t>(sizeof(T)) *
                          static_cast<int64_t>(outputs.size()) >=
                      kStreamBytes;
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t size = std::min(kBlock, count - done);
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    const auto input = [&](size_t i) {
      return reinterpret_cast<const T*>(inputs[i]) + done;
    };
    const T* result = input(0);
    for (size_t i = 1; i < inputs.size(); ++i) {
      combine(block, result, input(i), size);
      result = block;
    }
    for (char* output : outputs) {
      char* target = output + static_cast<size_t>(done) * sizeof(T);
      if (stream) {
        Stream(target, reinterpret_cast<const char*>(result), bytes);
      } else if (target != reinterpret_cast<const char*>(result)) {
        std::memcpy(target, result, bytes);
      }
    }
  }
  if (stream) Fence();
}

// Computes in f32; maxima and minima are exact.
void ReduceNarrow(Reduction reduction, DType dtype,
                  const std::vector<const char*>& inputs,
                  const std::vector<char*>& outputs, int64_t count) {
  constexpr int64_t kBlock = kBlockBytes / 4;
  alignas(64) float block[kBlock];
  alignas(64) float next[kBlock];
  const Combiner<float> combine = CombinerOf<float>(reduction);
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t size = std::min(kBlock, count - done);
    for (size_t i = 0; i < inputs.size(); ++i) {
      base::Convert(dtype, inputs[i] + done * 2, DType::kF32,
                    i == 0 ? block : next, size);
      if (i > 0) combine(block, block, next, size);
    }
    for (char* output : outputs)
      base::Convert(DType::kF32, block, dtype, output + done * 2, size);
  }
}

}  // namespace

void Reduce(Reduction reduction, DType dtype,
            const std::vector<const char*>& inputs,
            const std::vector<char*>& outputs, int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return ReduceAs<float>(reduction, inputs, outputs, count);
    case DType::kF64:
      return ReduceAs<double>(reduction, inputs, outputs, count);
    case DType::kF16:
    case DType::kBF16:
      return ReduceNarrow(reduction, dtype, inputs, outputs, count);
    case DType::kI8:
      return ReduceAs<int8_t>(reduction, inputs, outputs, count);
    case DType::kI16:
      return ReduceAs<int16_t>(reduction, inputs, outputs, count);
    case DType::kI32:
      return ReduceAs<int32_t>(reduction, inputs, outputs, count);
    case DType::kI64:
      return ReduceAs<int64_t>(reduction, inputs, outputs, count);
    case DType::kI1:
    case DType::kU8:
      return ReduceAs<uint8_t>(reduction, inputs, outputs, count);
    case DType::kU16:
      return ReduceAs<uint16_t>(reduction, inputs, outputs, count);
    case DType::kU32:
      return ReduceAs<uint32_t>(reduction, inputs, outputs, count);
    case DType::kU64:
      return ReduceAs<uint64_t>(reduction, inputs, outputs, count);
    case DType::kF8E4M3:  // programs with such reductions are refused
    case DType::kF8E5M2:
      return;
  }
}

}  // namespace partita::comm
