// A kernel with the signature of generated code, for executor_test.
#include <stdint.h>

// out = 2 x, through scratch.
void scale(void* const* buffers, int64_t begin, int64_t end, void* scratch) {
  const float* x = buffers[0];
  float* out = buffers[1];
  float* copy = scratch;
  for (int64_t i = begin; i < end; ++i) {
    copy[0] = x[i];
    out[i] = 2 * copy[0];
  }
}
