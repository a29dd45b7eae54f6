// Creation of oneDNN objects.
#include "runtime/cpu/dnnl_handles.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::cpu {
namespace {

dnnl_alg_kind_t AlgorithmOf(device::Activation activation) {
  switch (activation) {
    case device::Activation::kNone:
      return dnnl_alg_kind_undef;
    case device::Activation::kRelu:
      return dnnl_eltwise_relu;
    case device::Activation::kGeluErf:
      return dnnl_eltwise_gelu_erf;
    case device::Activation::kGeluTanh:
      return dnnl_eltwise_gelu_tanh;
    case device::Activation::kSilu:
      return dnnl_eltwise_swish;
    case device::Activation::kTanh:
      return dnnl_eltwise_tanh;
    case device::Activation::kSigmoid:
      return dnnl_eltwise_logistic;
    case device::Activation::kRelu6:
      return dnnl_eltwise_clip;
    case device::Activation::kHardSwish:
      return dnnl_eltwise_hardswish;
  }
  return dnnl_alg_kind_undef;
}

}  // namespace

absl::Status DnnlStatus(dnnl_status_t status, const char* what) {
  switch (status) {
    case dnnl_success:
      return absl::OkStatus();
    case dnnl_unimplemented:
      return absl::UnimplementedError(
          absl::StrCat("oneDNN has no implementation: ", what));
    case dnnl_out_of_memory:
      return absl::ResourceExhaustedError(
          absl::StrCat("oneDNN ran out of memory: ", what));
    case dnnl_invalid_arguments:
      return absl::InternalError(
          absl::StrCat("oneDNN rejects the arguments: ", what));
    default:
      return absl::InternalError(absl::StrCat(
          "oneDNN failed with status ", static_cast<int>(status), ": ", what));
  }
}

absl::StatusOr<dnnl_data_type_t> DnnlDataType(base::DType dtype) {
  switch (dtype) {
    case base::DType::kF32:
      return dnnl_f32;
    case base::DType::kBF16:
      return dnnl_bf16;
    case base::DType::kF16:
      return dnnl_f16;
    case base::DType::kI8:
      return dnnl_s8;
    case base::DType::kU8:
      return dnnl_u8;
    case base::DType::kI32:
      return dnnl_s32;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "library operations work on f32, f16, bf16, i8, u8 and i32, not on ",
          base::NameOf(dtype)));
  }
}

absl::StatusOr<dnnl_memory_desc_t> MakeMemoryDesc(
    base::DType dtype, const std::vector<int64_t>& dims,
    const std::vector<int64_t>& strides) {
  PARTITA_ASSIGN_OR_RETURN(const dnnl_data_type_t type, DnnlDataType(dtype));
  dnnl_memory_desc_t desc;
  std::vector<int64_t> row_major(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    row_major[i - 1] = row_major[i] * dims[i];
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().memory_desc_init_by_strides(
                     &desc, static_cast<int>(dims.size()), dims.data(), type,
                     strides.empty() ? row_major.data() : strides.data()),
                 "memory descriptor"));
  return desc;
}

absl::StatusOr<dnnl_memory_desc_t> MakeAnyMemoryDesc(
    base::DType dtype, const std::vector<int64_t>& dims) {
  PARTITA_ASSIGN_OR_RETURN(const dnnl_data_type_t type, DnnlDataType(dtype));
  dnnl_memory_desc_t desc;
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().memory_desc_init_by_tag(&desc, static_cast<int>(dims.size()),
                                     dims.data(), type, dnnl_format_tag_any),
      "memory descriptor"));
  return desc;
}

absl::StatusOr<DnnlMemory> MakeMemory(const dnnl_memory_desc_t& desc,
                                      dnnl_engine_t engine) {
  dnnl_memory_t memory = nullptr;
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().memory_create(&memory, &desc, engine, DNNL_MEMORY_NONE),
                 "memory"));
  return DnnlMemory(memory);
}

int ResidualArgument(device::Activation activation, bool activates_sum) {
  return DNNL_ARG_ATTR_MULTIPLE_POST_OP(
             activation == device::Activation::kNone || activates_sum ? 0 : 1) |
         DNNL_ARG_SRC_1;
}

absl::Status AppendActivation(dnnl_post_ops_t post_ops,
                              device::Activation activation) {
  if (activation == device::Activation::kNone) return absl::OkStatus();
  // alpha is swish's factor, relu's slope for negative values and clip's lower
  // bound; beta is clip's upper bound.
  const float alpha = activation == device::Activation::kSilu ? 1.0f : 0.0f;
  const float beta = activation == device::Activation::kRelu6 ? 6.0f : 0.0f;
  return DnnlStatus(Dnnl().post_ops_append_eltwise(
                        post_ops, 1.0f, AlgorithmOf(activation), alpha, beta),
                    "activation");
}

absl::StatusOr<DnnlAttr> MakeAttr(device::Activation activation,
                                  const dnnl_memory_desc_t* residual, bool sums,
                                  const dnnl_memory_desc_t* scale,
                                  const dnnl_memory_desc_t* shift,
                                  bool activates_sum) {
  dnnl_primitive_attr_t handle = nullptr;
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().primitive_attr_create(&handle), "attributes"));
  DnnlAttr attr(handle);
  PARTITA_RETURN_IF_ERROR(DnnlStatus(Dnnl().primitive_attr_set_scratchpad_mode(
                                         handle, dnnl_scratchpad_mode_user),
                                     "scratchpad mode"));
  dnnl_post_ops_t created = nullptr;
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().post_ops_create(&created), "post-operations"));
  std::unique_ptr<dnnl_post_ops, DnnlDestroy<&DnnlLibrary::post_ops_destroy>>
      post_ops(created);
  if (scale != nullptr)
    PARTITA_RETURN_IF_ERROR(DnnlStatus(
        Dnnl().post_ops_append_binary(post_ops.get(), dnnl_binary_mul, scale),
        "scale"));
  if (shift != nullptr)
    PARTITA_RETURN_IF_ERROR(DnnlStatus(
        Dnnl().post_ops_append_binary(post_ops.get(), dnnl_binary_add, shift),
        "bias"));
  if (!activates_sum)
    PARTITA_RETURN_IF_ERROR(AppendActivation(post_ops.get(), activation));
  if (residual != nullptr && sums) {
    PARTITA_RETURN_IF_ERROR(DnnlStatus(
        Dnnl().post_ops_append_sum(post_ops.get(), 1.0f), "residual"));
  } else if (residual != nullptr) {
    PARTITA_RETURN_IF_ERROR(
        DnnlStatus(Dnnl().post_ops_append_binary(post_ops.get(),
                                                 dnnl_binary_add, residual),
                   "residual"));
  }
  if (activates_sum)
    PARTITA_RETURN_IF_ERROR(AppendActivation(post_ops.get(), activation));
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().primitive_attr_set_post_ops(handle, post_ops.get()),
                 "post-operations"));
  return attr;
}

absl::StatusOr<DnnlPrimitiveDesc> MakePrimitiveDesc(
    const_dnnl_op_desc_t desc, const_dnnl_primitive_attr_t attr,
    dnnl_engine_t engine, const_dnnl_primitive_desc_t forward) {
  dnnl_primitive_desc_t handle = nullptr;
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().primitive_desc_create(&handle, desc, attr, engine, forward),
      "primitive descriptor"));
  return DnnlPrimitiveDesc(handle);
}

absl::StatusOr<DnnlPrimitive> MakePrimitive(const_dnnl_primitive_desc_t desc) {
  dnnl_primitive_t handle = nullptr;
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().primitive_create(&handle, desc), "primitive"));
  return DnnlPrimitive(handle);
}

}  // namespace partita::cpu
