// The weight is the right-hand side, and so the first factor of the library's
// column-major product (product_plan.h). Its compressed copy is made once; the
// weight itself stays in memory.
#include "runtime/cuda/sparse_product.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/cuda/lt_product.h"
#include "runtime/cuda/product_plan.h"
#include "runtime/cuda/trial.h"
#include "runtime/cuda/two_of_four.h"
#include "runtime/program/library_limits.h"

namespace partita::cuda {
namespace {

using device::GemmDesc;

constexpr uint32_t kAligned = 16;
constexpr int kWeight = 1, kBias = 2;  // operands
constexpr int64_t kPieceBytes = int64_t{4} << 20;

// Null unless the library may compute such a product.
std::optional<ProductPlan> PlanSparse(
    const GemmDesc& desc, const std::vector<const void*>& constants) {
  const bool is_plain =
      (desc.dtype == base::DType::kF16 || desc.dtype == base::DType::kBF16) &&
      !desc.has_bytes() && !desc.is_for_training() &&
      (desc.activation == device::Activation::kNone ||
       (desc.activation == device::Activation::kRelu && !desc.has_residual));
  if (!is_plain || constants[kWeight] == nullptr ||
      (desc.has_bias && constants[kBias] == nullptr) || desc.k % 4 != 0)
    return std::nullopt;
  const std::optional<ProductPlan> plan = PlanProduct(desc);
  return plan && plan->whole && plan->rhs_first && plan->batch == 1
             ? plan
             : std::nullopt;
}

// Calls Destroy for a library object that was made.
class Made {
 public:
  explicit Made(SparseStatus (*destroy)(const SparseObject*))
      : destroy_(destroy) {}
  Made(const Made&) = delete;
  ~Made() {
    if (made_) destroy_(&object_);
  }
  SparseObject* get() { return &object_; }
  const SparseObject* get() const { return &object_; }
  // Returns `status`, of the call that made the object.
  SparseStatus Note(SparseStatus status) {
    made_ = status == kSparseSuccess;
    return status;
  }

 private:
  SparseStatus (*const destroy_)(const SparseObject*);
  SparseObject object_ = {};
  bool made_ = false;
};

class SparseProduct : public CudaOp {
 public:
  SparseProduct(const Sparse& sparse, std::shared_ptr<Context> context,
                const GemmDesc& desc, const ProductPlan& plan)
      : CudaOp(device::OperandCount(desc)),
        sparse_(sparse),
        context_(std::move(context)),
        desc_(desc),
        plan_(plan),
        a_(sparse.DestroyMatrix),
        b_(sparse.DestroyMatrix),
        d_(sparse.DestroyMatrix),
        algorithm_(sparse.DestroyAlgorithm),
        multiplication_(sparse.DestroyPlan) {}
  ~SparseProduct() override {
    // The weight's memory is freed in it.
    static_cast<void>(context_->Enter());
  }

  absl::Status Prepare(Tuner& tuner, const std::vector<const void*>& constants);
  void Take(std::unique_ptr<CudaOp> dense) {
    scratch_bytes_ = std::max(scratch_bytes_, dense->scratch_bytes());
    dense_ = std::move(dense);
  }
  std::string Description() const override { return "cuSPARSELt"; }
  absl::Status Run(CuStream stream, void* const* buffers,
                   void* scratch) override;

 private:
  absl::Status Describe(const std::vector<const void*>& constants);
  absl::Status Compress(const void* weight);
  absl::Status Multiply(CuStream stream, const void* lhs, const void* c,
                        void* d, void* workspace) const;
  Tuner::Run PrepareTrial() const;

  const Sparse& sparse_;
  const std::shared_ptr<Context> context_;
  const GemmDesc desc_;
  const ProductPlan plan_;
  Made a_, b_, d_, algorithm_, multiplication_;
  SparseObject matmul_ = {};
  std::unique_ptr<Trial> memory_;  // of the compressed weight
  void* compressed_ = nullptr;
  std::unique_ptr<CudaOp> dense_;
};

absl::Status SparseProduct::Describe(
    const std::vector<const void*>& constants) {
  constexpr char kDoing[] = "describing a product with a 2:4 weight";
  const LtDataType type = LtTypeOf(desc_.dtype);
  const SparseObject* const handle = &sparse_.handle;
  PARTITA_RETURN_IF_ERROR(sparse_.Check(
      a_.Note(sparse_.MakeStructured(
          handle, a_.get(), plan_.a.rows, plan_.a.columns, plan_.a.leading,
          kAligned, type, kSparseColumnMajor, kSparseTwoOfFour)),
      kDoing));
  const auto make_dense = [&](Made& made, const MatrixPlan& matrix) {
    return sparse_.Check(
        made.Note(sparse_.MakeDense(handle, made.get(), matrix.rows,
                                    matrix.columns, matrix.leading, kAligned,
                                    type, kSparseColumnMajor)),
        kDoing);
  };
  PARTITA_RETURN_IF_ERROR(make_dense(b_, plan_.b));
  PARTITA_RETURN_IF_ERROR(make_dense(d_, plan_.d));
  const auto operation = [](const MatrixPlan& matrix) {
    return matrix.transposed ? kSparseTransposed : kSparseAsIs;
  };
  PARTITA_RETURN_IF_ERROR(
      sparse_.Check(sparse_.MakeMatmul(handle, &matmul_, operation(plan_.a),
                                       operation(plan_.b), a_.get(), b_.get(),
                                       d_.get(), d_.get(), kSparseComputeF32),
                    kDoing));
  const auto set = [&](SparseAttribute attribute, const auto& value) {
    return sparse_.Check(
        sparse_.SetMatmul(handle, &matmul_, attribute, &value, sizeof(value)),
        kDoing);
  };
  if (desc_.activation == device::Activation::kRelu)
    PARTITA_RETURN_IF_ERROR(set(kSparseRelu, int{1}));
  if (desc_.has_bias)
    PARTITA_RETURN_IF_ERROR(set(kSparseBiasPointer, constants[kBias]));
  PARTITA_RETURN_IF_ERROR(sparse_.Check(
      algorithm_.Note(sparse_.ChooseAlgorithm(
          handle, algorithm_.get(), &matmul_, kSparseDefaultAlgorithm)),
      kDoing));
  PARTITA_RETURN_IF_ERROR(sparse_.Check(
      multiplication_.Note(sparse_.MakePlan(handle, multiplication_.get(),
                                            &matmul_, algorithm_.get())),
      kDoing));
  size_t workspace = 0;
  PARTITA_RETURN_IF_ERROR(sparse_.Check(
      sparse_.Workspace(handle, multiplication_.get(), &workspace), kDoing));
  scratch_bytes_ = static_cast<int64_t>(workspace);
  if (scratch_bytes_ > program::kProductWorkspaceBytes)
    return absl::UnimplementedError("its workspace exceeds the limit");
  return absl::OkStatus();
}

absl::Status SparseProduct::Compress(const void* weight) {
  constexpr char kDoing[] = "compressing a 2:4 weight";
  size_t bytes = 0, buffer_bytes = 0;
  PARTITA_RETURN_IF_ERROR(sparse_.Check(
      sparse_.CompressedSize(&sparse_.handle, multiplication_.get(), &bytes,
                             &buffer_bytes),
      kDoing));
  const Driver& cuda = context_->driver();
  size_t available = 0, total = 0;
  PARTITA_RETURN_IF_ERROR(
      context_->Check(cuda.MemoryInfo(&available, &total), kDoing));
  // What is left serves scratch, transfers, and programs that are loaded later.
  if (available < bytes + buffer_bytes + total / 8)
    return absl::UnimplementedError(
        "an eighth of the GPU's memory would not stay free beside the "
        "compressed weight");
  memory_ = std::make_unique<Trial>(*context_);
  Trial temporary(*context_);
  compressed_ = memory_->Make(static_cast<int64_t>(bytes));
  void* const buffer = temporary.Make(static_cast<int64_t>(buffer_bytes));
  if (compressed_ == nullptr || buffer == nullptr)
    return absl::UnimplementedError(
        "the GPU's memory has no room for the compressed weight");
  CuStream stream = nullptr;
  PARTITA_RETURN_IF_ERROR(context_->Check(
      cuda.CreateStream(&stream, kCuStreamNonBlocking), "making a stream"));
  absl::Status status =
      sparse_.Check(sparse_.Compress(&sparse_.handle, multiplication_.get(),
                                     weight, compressed_, buffer, stream),
                    kDoing);
  status.Update(context_->Check(cuda.SynchronizeStream(stream), kDoing));
  cuda.DestroyStream(stream);
  return status;
}

// Returns null if there is not enough memory.
Tuner::Run SparseProduct::PrepareTrial() const {
  const auto memory = std::make_shared<Trial>(*context_);
  const int64_t size = base::SizeOf(desc_.dtype);
  void* const lhs = memory->Make(plan_.b.leading * plan_.b.columns * size);
  void* const d = memory->Make(plan_.d.leading * plan_.d.columns * size);
  void* const workspace = memory->Make(scratch_bytes_);
  if (!lhs || !d || !workspace) return nullptr;
  return [=](size_t, CuStream stream) {
    static_cast<void>(memory);  // freed with this function
    return Multiply(stream, lhs, d, d, workspace);
  };
}

absl::Status SparseProduct::Prepare(Tuner& tuner,
                                    const std::vector<const void*>& constants) {
  PARTITA_RETURN_IF_ERROR(Describe(constants));
  PARTITA_RETURN_IF_ERROR(Compress(constants[kWeight]));
  tuner.Warm({0}, [&] { return PrepareTrial(); });
  return absl::OkStatus();
}

absl::Status SparseProduct::Multiply(CuStream stream, const void* lhs,
                                     const void* c, void* d,
                                     void* workspace) const {
  const float alpha = 1, beta = desc_.has_residual ? 1 : 0;
  LtStream streams[] = {stream};
  return sparse_.Check(
      sparse_.Multiply(&sparse_.handle, multiplication_.get(), &alpha,
                       compressed_, lhs, &beta, c, d, workspace, streams, 1),
      "multiplying by a 2:4 weight");
}

absl::Status SparseProduct::Run(CuStream stream, void* const* buffers,
                                void* scratch) {
  for (int i = 0; i < operands(); ++i)
    if (i != kWeight && reinterpret_cast<uintptr_t>(buffers[i]) % kAligned != 0)
      return dense_->Run(stream, buffers, scratch);
  const int out = operands() - 1;
  return Multiply(stream, buffers[0],
                  buffers[desc_.has_residual ? out - 1 : out], buffers[out],
                  scratch);
}

}  // namespace

absl::StatusOr<bool> HasTwoOfFourWeight(
    const GemmDesc& desc, const std::vector<const void*>& constants,
    const Context& context, bool sample) {
  const std::optional<ProductPlan> plan = PlanSparse(desc, constants);
  if (!plan) return false;
  // The weight's upload may be in flight.
  const Driver& cuda = context.driver();
  PARTITA_RETURN_IF_ERROR(
      context.Check(cuda.SynchronizeAll(), "waiting for the weights"));
  const MatrixPlan& weight = plan->a;
  // k is along stored columns if A is transposed. Else each group spans four.
  const int64_t group_lines = weight.transposed ? 1 : 4;
  const int64_t line_bytes = weight.leading * 2;
  const int64_t lines = std::max(
      group_lines, kPieceBytes / line_bytes / group_lines * group_lines);
  std::vector<uint16_t> piece;
  int64_t step = group_lines;  // a small piece refuses most weights
  int64_t end = weight.columns;
  if (sample) end = std::min(end, group_lines + lines);
  for (int64_t line = 0; line < end; line += step, step = lines) {
    const int64_t count = std::min(step, weight.columns - line);
    piece.resize(
        static_cast<size_t>(weight.leading * (count - 1) + weight.rows));
    const char* const source =
        static_cast<const char*>(constants[kWeight]) + line * line_bytes;
    CuStream stream = nullptr;
    PARTITA_RETURN_IF_ERROR(context.Check(
        cuda.CreateStream(&stream, kCuStreamNonBlocking), "making a stream"));
    absl::Status copied = context.Check(
        cuda.CopyToHost(piece.data(), reinterpret_cast<CuPointer>(source),
                        piece.size() * 2, stream),
        "reading a weight");
    copied.Update(
        context.Check(cuda.SynchronizeStream(stream), "reading a weight"));
    cuda.DestroyStream(stream);
    PARTITA_RETURN_IF_ERROR(copied);
    for (int64_t at = 0; at < count; at += group_lines) {
      const uint16_t* const data = piece.data() + at * weight.leading;
      const bool obeys =
          weight.transposed
              ? AreTwoOfFour(data, weight.rows / 4, 4, 1)
              : AreTwoOfFour(data, weight.rows, 1, weight.leading);
      if (!obeys) return false;
    }
  }
  return true;
}

absl::StatusOr<std::unique_ptr<CudaOp>> MakeSparseProduct(
    const Sparse& sparse, std::shared_ptr<Context> context, Tuner& tuner,
    const GemmDesc& desc, const std::vector<const void*>& constants,
    std::unique_ptr<CudaOp>& dense) {
  auto product = std::make_unique<SparseProduct>(
      sparse, std::move(context), desc, *PlanSparse(desc, constants));
  PARTITA_RETURN_IF_ERROR(product->Prepare(tuner, constants));
  product->Take(std::move(dense));
  return std::unique_ptr<CudaOp>(std::move(product));
}

}  // namespace partita::cuda
