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

// A table of pieces (runtime/program/piece_table.h) of two inputs and an output.
struct Table {
  long long ends[128];
  float* buffers[128][3];
};

// The same as add, on pieces, with a thread for each item of all pieces.
KERNEL void add_pieces(const Table table) {
  const int item = Index();
  if (item >= table.ends[127]) return;
  int piece = 0;
  while (table.ends[piece] <= item) ++piece;
  const long long i = piece == 0 ? item : item - table.ends[piece - 1];
  float* const* buffers = table.buffers[piece];
  buffers[2][i] = buffers[0][i] + buffers[1][i];
}

// Adds 1 to out[i] through shared memory, an int for each thread of a block.
KERNEL void mark(float* out) {
  extern __attribute__((shared)) int counts[];
  const int thread = __nvvm_read_ptx_sreg_tid_x();
  counts[thread] = 1;
  out[Index()] += static_cast<float>(counts[thread]);
}
