// Two algorithms are asked for: one for operands that lie at multiples of 16
// bytes, as they nearly always do, and one for any others.
#include "runtime/cuda/gemm.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/product_plan.h"

namespace partita::cuda {
namespace {

using device::GemmDesc;

constexpr uint64_t kWorkspaceBytes = uint64_t{32} << 20;
constexpr uint32_t kAligned = 16;

// An object of the library's.
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  ~Owned() {
    if (object != nullptr) destroy(object);
  }
  void* object = nullptr;
  LtStatus (*destroy)(void*) = nullptr;
};

LtDataType TypeOf(base::DType dtype) {
  return dtype == base::DType::kF32   ? kLtF32
         : dtype == base::DType::kF16 ? kLtF16
                                      : kLtBF16;
}

int EpilogueOf(const GemmDesc& desc) {
  const int bias = desc.has_bias ? kLtEpilogueBias : 0;
  switch (desc.activation) {
    case device::Activation::kRelu:
      return kLtEpilogueRelu | bias;
    case device::Activation::kGeluTanh:
      return kLtEpilogueGelu | bias;
    default:
      return desc.has_bias ? kLtEpilogueBias : kLtEpilogueNone;
  }
}

class BlasProduct : public CudaOp {
 public:
  BlasProduct(const Blas& blas, std::shared_ptr<const OwnKernels> kernels,
              const GemmDesc& desc, const ProductPlan& plan)
      : CudaOp(device::OperandCount(desc.has_bias, desc.has_residual)),
        blas_(blas),
        kernels_(std::move(kernels)),
        desc_(desc),
        plan_(plan) {}

  absl::Status Prepare();
  std::string Description() const override {
    return plan_.whole ? "cuBLASLt" : "cuBLASLt and own kernel";
  }
  absl::Status Run(CuStream stream, void* const* buffers,
                   void* scratch) override;

 private:
  absl::Status MakeLayout(const MatrixPlan& matrix, LtDataType type,
                          Owned& layout);
  absl::Status MakeMatmul();
  absl::Status SetBias(const void* bias);
  absl::Status Choose(uint32_t alignment, LtHeuristic& choice);
  bool IsAligned(void* const* buffers) const;

  const Blas& blas_;
  const std::shared_ptr<const OwnKernels> kernels_;
  const GemmDesc desc_;
  const ProductPlan plan_;
  Owned matmul_, a_, b_, d_;
  LtHeuristic aligned_ = {}, any_ = {};
  int64_t sums_bytes_ = 0;  // of the f32 sums, at the beginning of the scratch
  FinishArgs finish_ = {};
  CuFunction finish_function_ = nullptr;
};

absl::Status BlasProduct::MakeLayout(const MatrixPlan& matrix, LtDataType type,
                                     Owned& layout) {
  layout.destroy = blas_.DestroyLayout;
  PARTITA_RETURN_IF_ERROR(blas_.Check(
      blas_.CreateLayout(&layout.object, type,
                         static_cast<uint64_t>(matrix.rows),
                         static_cast<uint64_t>(matrix.columns), matrix.leading),
      "describing a matrix"));
  const int32_t batch = static_cast<int32_t>(plan_.batch);
  const int64_t stride = matrix.batch_stride;
  PARTITA_RETURN_IF_ERROR(blas_.Check(
      blas_.SetLayout(layout.object, kLtBatchCount, &batch, sizeof(batch)),
      "describing a batch"));
  return blas_.Check(
      blas_.SetLayout(layout.object, kLtBatchStride, &stride, sizeof(stride)),
      "describing a batch");
}

absl::Status BlasProduct::MakeMatmul() {
  matmul_.destroy = blas_.DestroyMatmul;
  PARTITA_RETURN_IF_ERROR(
      blas_.Check(blas_.CreateMatmul(&matmul_.object, kLtComputeF32, kLtF32),
                  "describing a product"));
  const int32_t transpose_a = plan_.a.transposed ? 1 : 0;
  const int32_t transpose_b = plan_.b.transposed ? 1 : 0;
  const int32_t epilogue = plan_.whole ? EpilogueOf(desc_) : kLtEpilogueNone;
  const auto set = [&](LtMatmulAttribute attribute, const int32_t& value) {
    return blas_.Check(
        blas_.SetMatmul(matmul_.object, attribute, &value, sizeof(value)),
        "describing a product");
  };
  PARTITA_RETURN_IF_ERROR(set(kLtTransposeA, transpose_a));
  PARTITA_RETURN_IF_ERROR(set(kLtTransposeB, transpose_b));
  return set(kLtEpilogue, epilogue);
}

absl::Status BlasProduct::SetBias(const void* bias) {
  return blas_.Check(
      blas_.SetMatmul(matmul_.object, kLtBiasPointer, &bias, sizeof(bias)),
      "naming the bias");
}

absl::Status BlasProduct::Choose(uint32_t alignment, LtHeuristic& choice) {
  Owned preference;
  preference.destroy = blas_.DestroyPreference;
  PARTITA_RETURN_IF_ERROR(blas_.Check(
      blas_.CreatePreference(&preference.object), "asking for an algorithm"));
  const auto set = [&](LtPreferenceAttribute attribute, const auto& value) {
    return blas_.Check(blas_.SetPreference(preference.object, attribute, &value,
                                           sizeof(value)),
                       "asking for an algorithm");
  };
  PARTITA_RETURN_IF_ERROR(set(kLtMaxWorkspaceBytes, kWorkspaceBytes));
  for (const LtPreferenceAttribute attribute :
       {kLtAlignmentA, kLtAlignmentB, kLtAlignmentC, kLtAlignmentD})
    PARTITA_RETURN_IF_ERROR(set(attribute, alignment));
  // Some versions look at the bias already now: at how its address is aligned.
  const void* const bias = reinterpret_cast<const void*>(uintptr_t{alignment});
  if (plan_.whole && desc_.has_bias) PARTITA_RETURN_IF_ERROR(SetBias(bias));
  int found = 0;
  PARTITA_RETURN_IF_ERROR(
      blas_.Check(blas_.Heuristics(blas_.handle, matmul_.object, a_.object,
                                   b_.object, d_.object, d_.object,
                                   preference.object, 1, &choice, &found),
                  "looking for an algorithm"));
  return found > 0 ? blas_.Check(choice.state, "looking for an algorithm")
                   : blas_.Check(kLtNotSupported, "looking for an algorithm");
}

absl::Status BlasProduct::Prepare() {
  const LtDataType type = TypeOf(desc_.dtype);
  PARTITA_RETURN_IF_ERROR(MakeLayout(plan_.a, type, a_));
  PARTITA_RETURN_IF_ERROR(MakeLayout(plan_.b, type, b_));
  PARTITA_RETURN_IF_ERROR(MakeLayout(plan_.d, plan_.whole ? type : kLtF32, d_));
  PARTITA_RETURN_IF_ERROR(MakeMatmul());
  PARTITA_RETURN_IF_ERROR(Choose(kAligned, aligned_));
  PARTITA_RETURN_IF_ERROR(
      Choose(static_cast<uint32_t>(base::SizeOf(desc_.dtype)), any_));
  if (!plan_.whole) {
    PARTITA_ASSIGN_OR_RETURN(finish_.product, ToProductArgs(desc_));
    PARTITA_ASSIGN_OR_RETURN(finish_function_,
                             kernels_->Find("partita_finish_product"));
    sums_bytes_ = (finish_.product.count * 4 + 255) / 256 * 256;
  }
  scratch_bytes_ =
      sums_bytes_ + static_cast<int64_t>(std::max(aligned_.workspace_bytes,
                                                  any_.workspace_bytes));
  return absl::OkStatus();
}

bool BlasProduct::IsAligned(void* const* buffers) const {
  for (int i = 0; i < operands(); ++i)
    if (reinterpret_cast<uintptr_t>(buffers[i]) % kAligned != 0) return false;
  return true;
}

absl::Status BlasProduct::Run(CuStream stream, void* const* buffers,
                              void* scratch) {
  const LtHeuristic& choice = IsAligned(buffers) ? aligned_ : any_;
  void* const out = buffers[operands() - 1];
  if (plan_.whole && desc_.has_bias)
    PARTITA_RETURN_IF_ERROR(SetBias(buffers[2]));
  const bool adds = plan_.whole && desc_.has_residual;
  const float alpha = 1, beta = adds ? 1 : 0;
  void* const d = plan_.whole ? out : scratch;
  const void* const c = adds ? buffers[operands() - 2] : d;
  PARTITA_RETURN_IF_ERROR(blas_.Check(
      blas_.Multiply(blas_.handle, matmul_.object, &alpha,
                     buffers[plan_.rhs_first ? 1 : 0], a_.object,
                     buffers[plan_.rhs_first ? 0 : 1], b_.object, &beta, c,
                     d_.object, d, d_.object, &choice.algorithm,
                     static_cast<char*>(scratch) + sums_bytes_,
                     choice.workspace_bytes, stream),
      "multiplying"));
  if (plan_.whole) return absl::OkStatus();
  finish_.sums = static_cast<const float*>(scratch);
  SetOperands(desc_, buffers, finish_.product);
  return kernels_->Launch(stream, finish_function_, &finish_,
                          finish_.product.count);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaOp>> MakeBlasProduct(
    const Blas& blas, std::shared_ptr<const OwnKernels> kernels,
    const GemmDesc& desc) {
  const std::optional<ProductPlan> plan = PlanProduct(desc);
  if (!plan)
    return absl::UnimplementedError(
        "a matrix has neither rows nor columns that lie together");
  auto product =
      std::make_unique<BlasProduct>(blas, std::move(kernels), desc, *plan);
  PARTITA_RETURN_IF_ERROR(product->Prepare());
  return std::unique_ptr<CudaOp>(std::move(product));
}

}  // namespace partita::cuda
