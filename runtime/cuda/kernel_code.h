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
enum class KernelType : int { kF32 = 0, kF16, kBF16, kF8E4M3, kF8E5M2 };

PARTITA_KERNEL_CODE Int BytesOf(KernelType type) {
  switch (type) {
    case KernelType::kF32:
      return 4;
    case KernelType::kF16:
    case KernelType::kBF16:
      return 2;
    case KernelType::kF8E4M3:
    case KernelType::kF8E5M2:
      break;
  }
  return 1;
}

// e4m3 has a bias of 7, no infinities, and NaN only for all ones.
PARTITA_KERNEL_CODE float Float8E4M3(unsigned char bits) {
  const unsigned number = bits & 0x7fu;
  float size = __builtin_bit_cast(float, (number << 20) + (120u << 23));
  if (number < 8) size = static_cast<float>(number) / 512;
  if (number == 0x7f) size = __builtin_nanf("");
  return bits & 0x80u ? -size : size;
}

// e5m2 is the upper byte of an f16.
PARTITA_KERNEL_CODE float Float8E5M2(unsigned char bits) {
  return static_cast<float>(
      __builtin_bit_cast(_Float16, static_cast<unsigned short>(bits << 8)));
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
    case KernelType::kF8E4M3:
    case KernelType::kF8E5M2:
      break;
  }
  const unsigned bits = static_cast<const unsigned short*>(data)[i];
  return __builtin_bit_cast(float, bits << 16);
}

// A factor of a product, which alone may have 8 bits: other kernels need fewer
// registers without these types.
PARTITA_KERNEL_CODE float LoadFactor(KernelType type, const void* data, Int i) {
  if (type != KernelType::kF8E4M3 && type != KernelType::kF8E5M2)
    return Load(type, data, i);
  const unsigned char* const bits = static_cast<const unsigned char*>(data) + i;
  PARTITA_KERNEL_READS(bits, 1ul);
  return type == KernelType::kF8E4M3 ? Float8E4M3(*bits) : Float8E5M2(*bits);
}

// No kernel stores floats of 8 bits.
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
    case KernelType::kF8E4M3:
    case KernelType::kF8E5M2:
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
