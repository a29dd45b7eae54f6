// Entry points of the runtime's own kernels for GPUs. clang compiles this file
// to PTX, without CUDA.
#include "runtime/cuda/own_kernels.h"

#define PARTITA_DEFINE(symbol, Args, Body)                            \
  extern "C" __attribute__((global)) void symbol(partita::cuda::Args args) { \
    const partita::cuda::Int block = __nvvm_read_ptx_sreg_ctaid_x();  \
    partita::cuda::Body(args, block * __nvvm_read_ptx_sreg_ntid_x() + \
                                  __nvvm_read_ptx_sreg_tid_x());      \
  }
PARTITA_OWN_KERNELS(PARTITA_DEFINE)
