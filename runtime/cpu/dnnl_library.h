// oneDNN's C interface, opened at run time, so that one binary runs on machines
// with and without it, and so that its threads can be configured first.
#ifndef PARTITA_RUNTIME_CPU_DNNL_LIBRARY_H_
#define PARTITA_RUNTIME_CPU_DNNL_LIBRARY_H_

#include "absl/status/status.h"
#include "oneapi/dnnl/dnnl.h"

namespace partita::cpu {

// The functions that the CPU device calls, without the prefix dnnl_.
#define PARTITA_DNNL_FUNCTIONS(X)                   \
  X(dilated_convolution_backward_data_desc_init)    \
  X(dilated_convolution_backward_weights_desc_init) \
  X(dilated_convolution_forward_desc_init)          \
  X(engine_create)                                  \
  X(engine_destroy)                                 \
  X(get_effective_cpu_isa)                          \
  X(matmul_desc_init)                               \
  X(memory_create)                                  \
  X(memory_desc_equal)                              \
  X(memory_desc_get_size)                           \
  X(memory_desc_init_by_strides)                    \
  X(memory_desc_init_by_tag)                        \
  X(memory_destroy)                                 \
  X(memory_set_data_handle)                         \
  X(memory_set_data_handle_v2)                      \
  X(post_ops_append_binary)                         \
  X(post_ops_append_eltwise)                        \
  X(post_ops_append_sum)                            \
  X(post_ops_create)                                \
  X(post_ops_destroy)                               \
  X(primitive_attr_create)                          \
  X(primitive_attr_destroy)                         \
  X(primitive_attr_set_output_scales)               \
  X(primitive_attr_set_post_ops)                    \
  X(primitive_attr_set_scratchpad_mode)             \
  X(primitive_attr_set_zero_points)                 \
  X(primitive_create)                               \
  X(primitive_desc_create)                          \
  X(primitive_desc_destroy)                         \
  X(primitive_desc_query)                           \
  X(primitive_desc_query_md)                        \
  X(primitive_destroy)                              \
  X(primitive_execute)                              \
  X(primitive_get_primitive_desc)                   \
  X(reorder_primitive_desc_create)                  \
  X(stream_create)                                  \
  X(stream_destroy)

struct DnnlLibrary {
#define PARTITA_DNNL_MEMBER(name) decltype(&::dnnl_##name) name = nullptr;
  PARTITA_DNNL_FUNCTIONS(PARTITA_DNNL_MEMBER)
#undef PARTITA_DNNL_MEMBER
};

// Opens oneDNN once. FailedPrecondition, with what to install, if it is missing
// or too old. Any thread may call it.
absl::Status OpenDnnl();

// The functions. Call it only after OpenDnnl has returned OK.
const DnnlLibrary& Dnnl();

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_DNNL_LIBRARY_H_
