// Gemm as a oneDNN matmul: 2-D if one weight matrix serves the whole batch,
// else 3-D.
#include "runtime/cpu/gemm.h"

#include <array>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"

namespace partita::cpu {
namespace {

// A matrix or a batch of matrices, with rows and columns as the last
// dimensions.
struct Matrices {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
};

// The stride of a dimension of size 1 has no effect. Gives it the value of a
// dense layout, which oneDNN recognises.
Matrices MakeMatrices(int64_t batch, int64_t rows, int64_t columns,
                      std::array<int64_t, 3> strides) {
  if (columns == 1 && (rows == 1 || strides[1] != 1)) strides[2] = 1;
  if (rows == 1) strides[1] = columns * strides[2];
  if (columns == 1 && strides[1] == 1 && rows > 1) strides[2] = rows;
  if (batch == 0) return {{rows, columns}, {strides[1], strides[2]}};
  // A batch stride of 0 repeats one matrix.
  if (strides[0] == 0 || batch == 1)
    return {{1, rows, columns}, {rows * columns, strides[1], strides[2]}};
  return {{batch, rows, columns}, {strides[0], strides[1], strides[2]}};
}

bool BatchIsRows(const device::GemmDesc& desc) {
  return desc.rhs_strides[0] == 0 &&
         desc.lhs_strides[0] == desc.m * desc.lhs_strides[1] &&
         desc.out_strides[0] == desc.m * desc.out_strides[1];
}

// Merges the batch into the rows if the product stays the same. A batch of 0
// means plain 2-D matrices.
device::GemmDesc Simplified(device::GemmDesc desc) {
  if (desc.batch > 1 && BatchIsRows(desc)) {
    desc.m *= desc.batch;
    desc.batch = 1;
  }
  if (desc.batch == 1) desc.batch = 0;
  return desc;
}

// The rows of a row-major rhs, a multiple of 4 KiB apart, share the sets of the
// first-level cache, where oneDNN's f32 kernels read them in place at half
// speed. With this many rows of lhs, a copy in oneDNN's layout at every run
// costs less. Kernels of 16-bit factors copy rhs anyway.
bool CopiesRhs(const device::GemmDesc& desc) {
  constexpr int64_t kFloats = 4096 / sizeof(float), kMinRows = 128;
  return desc.batch == 0 && desc.dtype == base::DType::kF32 &&
         !desc.has_bytes() && desc.m >= kMinRows && desc.rhs_strides[2] == 1 &&
         desc.rhs_strides[1] >= kFloats && desc.rhs_strides[1] % kFloats == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeGemm(
    DnnlContext& context, const device::GemmDesc& original,
    const Constant& rhs) {
  const device::GemmDesc desc = Simplified(original);
  const Matrices lhs_layout =
      MakeMatrices(desc.batch, desc.m, desc.k, desc.lhs_strides);
  const Matrices rhs_layout =
      MakeMatrices(desc.batch, desc.k, desc.n, desc.rhs_strides);
  const Matrices out_layout =
      MakeMatrices(desc.batch, desc.m, desc.n, desc.out_strides);
  std::vector<int64_t> bias_dims(out_layout.dims.size(), 1);
  bias_dims.back() = desc.n;
  const base::DType rhs_type = desc.has_bytes() ? base::DType::kI8 : desc.dtype;
  const base::DType lhs_type =
      desc.factors == device::Factors::kU8I8 ? base::DType::kU8 : rhs_type;
  PARTITA_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t lhs_desc,
      MakeMemoryDesc(lhs_type, lhs_layout.dims, lhs_layout.strides));
  PARTITA_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t rhs_desc,
      MakeMemoryDesc(rhs_type, rhs_layout.dims, rhs_layout.strides));
  PARTITA_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t out_desc,
      MakeMemoryDesc(desc.dtype, out_layout.dims, out_layout.strides));
  PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t bias_desc,
                           MakeMemoryDesc(desc.dtype, bias_dims));
  PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t any_rhs,
                           MakeAnyMemoryDesc(rhs_type, rhs_layout.dims));
  PARTITA_ASSIGN_OR_RETURN(
      const DnnlAttr attr,
      MakeAttr(desc.activation, desc.has_residual ? &out_desc : nullptr,
               /*sums=*/false, desc.has_scale() ? &bias_desc : nullptr,
               desc.has_scale() && desc.has_bias ? &bias_desc : nullptr));
  const bool chooses_layout = rhs.identity != nullptr || CopiesRhs(desc);
  dnnl_matmul_desc_t matmul;
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().matmul_desc_init(
          &matmul, &lhs_desc, chooses_layout ? &any_rhs : &rhs_desc,
          desc.has_bias && !desc.has_scale() ? &bias_desc : nullptr, &out_desc),
      "matrix product"));
  PARTITA_ASSIGN_OR_RETURN(
      DnnlPrimitiveDesc primitive,
      MakePrimitiveDesc(&matmul, attr.get(), context.engine.get()));

  std::vector<DnnlOperand> operands = {{DNNL_ARG_SRC, 0, lhs_desc, {}},
                                       {DNNL_ARG_WEIGHTS, 1, rhs_desc, rhs}};
  int index = 2;
  // oneDNN would add its own bias before it multiplies by a scale.
  if (desc.has_scale())
    operands.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                        index++,
                        bias_desc,
                        {}});
  if (desc.has_bias)
    operands.push_back({desc.has_scale()
                            ? DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1
                            : DNNL_ARG_BIAS,
                        index++,
                        bias_desc,
                        {}});
  if (desc.has_residual) {
    operands.push_back(
        {ResidualArgument(desc.activation), index, out_desc, {}});
    operands.back().output_index = ++index;
  }
  operands.push_back({DNNL_ARG_DST, index, out_desc, {}, /*output=*/true});
  PARTITA_ASSIGN_OR_RETURN(
      std::unique_ptr<DnnlOp> op,
      DnnlOp::Create(context, std::move(primitive), operands));
  return std::unique_ptr<CpuOp>(std::move(op));
}

}  // namespace partita::cpu
