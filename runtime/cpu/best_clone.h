// One source compiled for several instruction sets.
#ifndef PARTITA_RUNTIME_CPU_BEST_CLONE_H_
#define PARTITA_RUNTIME_CPU_BEST_CLONE_H_

namespace partita::cpu {

// Returns the clone for the best instructions that this CPU has: avx512 needs
// AVX-512 F, BW and VL; avx2 needs AVX2 and FMA; plain runs on every x86-64.
template <typename Clone>
const Clone& BestClone(const Clone& avx512, const Clone& avx2,
                       const Clone& plain) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return avx2;
  return plain;
}

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_BEST_CLONE_H_
