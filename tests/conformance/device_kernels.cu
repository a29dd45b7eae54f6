// Kernels as code for GPUs has them, for the conformance tests.
#define KERNEL extern "C" __attribute__((global))

static __attribute__((device)) int Index() {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}

// out[i] = a[i] + b[i], with a thread for each i.
KERNEL void add(const float* a, const float* b, float* out) {
  const int i = Index();
  out[i] = a[i] + b[i];
}

// Adds 1 to out[i] through shared memory, an int for each thread of a block.
KERNEL void mark(float* out) {
  extern __attribute__((shared)) int counts[];
  const int thread = __nvvm_read_ptx_sreg_tid_x();
  counts[thread] = 1;
  out[Index()] += static_cast<float>(counts[thread]);
}
