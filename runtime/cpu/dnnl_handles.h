// Owners for oneDNN's C handles, and its status codes as absl::Status. The C++
// interface would throw exceptions.
#ifndef PARTITA_RUNTIME_CPU_DNNL_HANDLES_H_
#define PARTITA_RUNTIME_CPU_DNNL_HANDLES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "oneapi/dnnl/dnnl.h"
#include "runtime/base/dtype.h"
#include "runtime/cpu/dnnl_library.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

template <auto Destroy>
struct DnnlDestroy {
  template <typename T>
  void operator()(T* handle) const {
    (Dnnl().*Destroy)(handle);
  }
};
using DnnlEngine =
    std::unique_ptr<dnnl_engine, DnnlDestroy<&DnnlLibrary::engine_destroy>>;
using DnnlStream =
    std::unique_ptr<dnnl_stream, DnnlDestroy<&DnnlLibrary::stream_destroy>>;
using DnnlMemory =
    std::unique_ptr<dnnl_memory, DnnlDestroy<&DnnlLibrary::memory_destroy>>;
using DnnlPrimitive =
    std::unique_ptr<dnnl_primitive,
                    DnnlDestroy<&DnnlLibrary::primitive_destroy>>;
using DnnlPrimitiveDesc =
    std::unique_ptr<dnnl_primitive_desc,
                    DnnlDestroy<&DnnlLibrary::primitive_desc_destroy>>;
using DnnlAttr =
    std::unique_ptr<dnnl_primitive_attr,
                    DnnlDestroy<&DnnlLibrary::primitive_attr_destroy>>;

// Unimplemented for dnnl_unimplemented, ResourceExhausted if memory ran out,
// else Internal. Each message names `what`.
absl::Status DnnlStatus(dnnl_status_t status, const char* what);

absl::StatusOr<dnnl_data_type_t> DnnlDataType(base::DType dtype);
// An empty list of strides means row-major.
absl::StatusOr<dnnl_memory_desc_t> MakeMemoryDesc(
    base::DType dtype, const std::vector<int64_t>& dims,
    const std::vector<int64_t>& strides = {});
// A descriptor whose layout oneDNN chooses.
absl::StatusOr<dnnl_memory_desc_t> MakeAnyMemoryDesc(
    base::DType dtype, const std::vector<int64_t>& dims);

// A memory object without a buffer: set its pointer before each use.
absl::StatusOr<DnnlMemory> MakeMemory(const dnnl_memory_desc_t& desc,
                                      dnnl_engine_t engine);

absl::Status AppendActivation(dnnl_post_ops_t post_ops,
                              device::Activation activation);

// Attributes with the post-operations scale, shift, activation, then addition
// of a residual (null: none), or with `activates_sum` the addition, then the
// activation. The caller supplies the scratchpad. With `sums`
// the residual is the output's previous content, else a separate argument.
absl::StatusOr<DnnlAttr> MakeAttr(device::Activation activation,
                                  const dnnl_memory_desc_t* residual,
                                  bool sums = false,
                                  const dnnl_memory_desc_t* scale = nullptr,
                                  const dnnl_memory_desc_t* shift = nullptr,
                                  bool activates_sum = false);
// The DNNL_ARG_... index of the residual post-operation.
int ResidualArgument(device::Activation activation, bool activates_sum = false);

// `forward` is the forward primitive of a backward operation, else null.
absl::StatusOr<DnnlPrimitiveDesc> MakePrimitiveDesc(
    const_dnnl_op_desc_t desc, const_dnnl_primitive_attr_t attr,
    dnnl_engine_t engine, const_dnnl_primitive_desc_t forward = nullptr);
absl::StatusOr<DnnlPrimitive> MakePrimitive(const_dnnl_primitive_desc_t desc);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_DNNL_HANDLES_H_
