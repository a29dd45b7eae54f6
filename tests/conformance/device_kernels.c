// Kernels with the signature of generated code, for the conformance tests.
#include <stdint.h>

// out[i] = a[i] + b[i]
void add(void* const* buffers, int64_t begin, int64_t end, void* scratch) {
  const float* a = buffers[0];
  const float* b = buffers[1];
  float* out = buffers[2];
  for (int64_t i = begin; i < end; ++i) out[i] = a[i] + b[i];
}

// Counts in scratch how often each share was done, then adds the counts to out: every element becomes 1.
void mark(void* const* buffers, int64_t begin, int64_t end, void* scratch) {
  float* out = buffers[0];
  int32_t* counts = scratch;
  for (int64_t i = begin; i < end; ++i) counts[i - begin] = 1;
  for (int64_t i = begin; i < end; ++i) out[i] += (float)counts[i - begin];
}
