// Basics of the runtime's own kernels: macros that make code compile for GPUs
// and for the CPU, and access to float elements.
#ifndef PARTITA_RUNTIME_CUDA_KERNEL_CODE_H_
#define PARTITA_RUNTIME_CUDA_KERNEL_CODE_H_

#ifdef __CUDA__
#define PARTITA_KERNEL_CODE __attribute__((device)) __attribute__((host)) inline
#elif !defined(PARTITA_KERNEL_CODE)
#include <cmath>
#define PARTITA_KERNEL_CODE inline
#endif
// Hooks for tests that track which memory kernels access.
#ifndef PARTITA_KERNEL_READS
#define PARTITA_KERNEL_READS(memory, bytes) static_cast<void>(0)
#define PARTITA_KERNEL_WRITES(memory, bytes) static_cast<void>(0)
#endif

namespace partita::cuda {

using Int = long long;

// Element types of kernels. This header cannot include base::DType.
enum class KernelType : int { kF32 = 0, kF16, kBF16 };

PARTITA_KERNEL_CODE Int BytesOf(KernelType type) {
  return type == KernelType::kF32 ? 4 : 2;
}

PARTITA_KERNEL_CODE float Load(KernelType type, const void* data, Int i) {
  PARTITA_KERNEL_READS(static_cast<const char*>(data) + i * BytesOf(type),
                       static_cast<unsigned long>(BytesOf(type)));
  switch (type) {
    case KernelType::kF32:
      return static_cast<const float*>(data)[i];
    case KernelType::kF16:
      return static_cast<float>(static_cast<const _Float16*>(data)[i]);
    case KernelType::kBF16:
      break;
  }
  const unsigned bits = static_cast<const unsigned short*>(data)[i];
  return __builtin_bit_cast(float, bits << 16);
}

PARTITA_KERNEL_CODE void Store(KernelType type, void* data, Int i, float x) {
  PARTITA_KERNEL_WRITES(static_cast<char*>(data) + i * BytesOf(type),
                        static_cast<unsigned long>(BytesOf(type)));
  switch (type) {
    case KernelType::kF32:
      static_cast<float*>(data)[i] = x;
      return;
    case KernelType::kF16:
      static_cast<_Float16*>(data)[i] = static_cast<_Float16>(x);
      return;
    case KernelType::kBF16:
      break;
  }
  unsigned bits = __builtin_bit_cast(unsigned, x);
  // Rounds to nearest, ties to even. NaN stays NaN.
  bits = x != x ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
  static_cast<unsigned short*>(data)[i] =
      static_cast<unsigned short>(bits >> 16);
}

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_KERNEL_CODE_H_
