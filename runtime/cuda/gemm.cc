// Each product has two algorithms: one for operands aligned to 16 bytes, which
// is the usual case, and one for any alignment. The tuner chooses the first
// among several. If the library has no second one, badly aligned operands are
// copied to aligned scratch. An own kernel multiplies badly aligned floats of 8
// bits; no compiled program has them.
#include "runtime/cuda/gemm.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/lt_product.h"
#include "runtime/cuda/product_plan.h"
#include "runtime/cuda/trial.h"
#include "runtime/program/library_limits.h"

namespace partita::cuda {
namespace {

using device::GemmDesc;
using device::Preactivation;
using device::Sums;

constexpr uint64_t kWorkspaceBytes = program::kProductWorkspaceBytes;
constexpr uint32_t kAligned = 16;
constexpr int kCandidates = 8;

// Owner of a library object.
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

// Operands, by their place among the buffers; -1: none.
struct Places {
  explicit Places(const GemmDesc& desc) {
    if (desc.has_scale()) scale = next++;
    if (desc.has_bias) bias = next++;
    if (desc.has_residual) residual = next++;
    if (desc.preactivation == Preactivation::kGiven) preactivation = next++;
    out = next++;
    if (desc.preactivation == Preactivation::kKept) preactivation = next++;
    if (desc.sums != Sums::kNone) sums = next++;
  }
  int scale = -1, bias = -1, residual = -1, preactivation = -1, out = -1,
      sums = -1;

 private:
  int next = 2;  // behind lhs and rhs
};

class BlasProduct : public CudaOp {
 public:
  // Without `fuses_sums`, an own kernel computes sums.
  BlasProduct(const Blas& blas, std::shared_ptr<const OwnKernels> kernels,
              const GemmDesc& desc, const ProductPlan& plan, bool fuses_sums)
      : CudaOp(device::OperandCount(desc)),
        blas_(blas),
        kernels_(std::move(kernels)),
        desc_(desc),
        plan_(plan),
        places_(desc),
        fuses_sums_(fuses_sums) {}

  absl::Status Prepare(Tuner& tuner, const Context& context);
  std::string Description() const override {
    return plan_.whole && (fuses_sums_ || desc_.sums == Sums::kNone)
               ? "cuBLASLt"
               : "cuBLASLt and own kernel";
  }
  absl::Status Run(CuStream stream, void* const* buffers,
                   void* scratch) override;

 private:
  absl::Status Run(CuStream stream, const LtHeuristic& choice,
                   void* const* buffers, void* scratch);
  absl::Status MakeLayout(const MatrixPlan& matrix, LtDataType type,
                          Owned& layout);
  absl::Status MakeMatmul();
  // Sets the addresses of a bias, or of sums, of a pre-activation and of a
  // scale.
  absl::Status SetVectors(const void* vector, const void* preactivation,
                          const void* scale);
  bool has_vector() const {
    return plan_.whole &&
           (desc_.has_bias || (fuses_sums_ && desc_.sums != Sums::kNone));
  }
  bool has_preactivation() const {
    return plan_.whole && desc_.preactivation != Preactivation::kNone;
  }
  // The library's algorithms, its preferred one first. Not empty.
  absl::StatusOr<std::vector<LtHeuristic>> Ask(uint32_t alignment, int most);
  Tuner::Run PrepareTrial(const std::vector<LtHeuristic>& choices,
                          std::shared_ptr<Trial> memory);
  absl::Status Multiply(CuStream stream, const LtHeuristic& choice,
                        const void* lhs, const void* rhs, const void* c,
                        void* d, void* workspace);
  static bool IsAligned(void* const* buffers, int count);
  // True if the library itself accesses operand `index`. Our own kernel
  // accesses the others, at any alignment.
  bool IsLibraryOperand(int index) const {
    if (index == places_.sums && !fuses_sums_) return false;
    return plan_.whole || index < 2;
  }
  void PlanMoves();
  // Sets `moved` to the operands, with badly aligned ones copied to the
  // scratch. With `back`, copies the results from the scratch to their places
  // instead.
  absl::Status Move(CuStream stream, void* const* buffers, char* scratch,
                    std::vector<void*>& moved, bool back) const;

  const Blas& blas_;
  const std::shared_ptr<const OwnKernels> kernels_;
  const GemmDesc desc_;
  const ProductPlan plan_;
  const Places places_;
  const bool fuses_sums_;
  Owned matmul_, a_, b_, d_;
  LtHeuristic aligned_ = {}, any_ = {};
  // Used if there is no `any_`: for floats of 8 bits, the whole product; or
  // scratch offsets and sizes of moved operands,
  // and the kernel that copies them.
  std::unique_ptr<CudaOp> unaligned_;
  bool moves_ = false;
  std::vector<int64_t> moved_at_, moved_bytes_;
  CuFunction copy_ = nullptr;
  int64_t sums_bytes_ = 0;  // of the f32 sums, at the start of the scratch
  FinishArgs finish_ = {};
  CuFunction finish_function_ = nullptr;
  FactorSums sums_;
  int64_t parts_at_ = 0;  // scratch of `sums_`
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
  const bool finishes =
      plan_.whole && (fuses_sums_ || desc_.sums == Sums::kNone);
  const int32_t epilogue =
      finishes ? EpilogueOf(desc_, plan_) : kLtEpilogueNone;
  const auto set = [&](LtMatmulAttribute attribute, const int32_t& value) {
    return blas_.Check(
        blas_.SetMatmul(matmul_.object, attribute, &value, sizeof(value)),
        "describing a product");
  };
  PARTITA_RETURN_IF_ERROR(set(kLtTransposeA, transpose_a));
  PARTITA_RETURN_IF_ERROR(set(kLtTransposeB, transpose_b));
  PARTITA_RETURN_IF_ERROR(set(kLtEpilogue, epilogue));
  if (!has_preactivation()) return absl::OkStatus();
  const auto set_size = [&](LtMatmulAttribute attribute, const int64_t& value) {
    return blas_.Check(
        blas_.SetMatmul(matmul_.object, attribute, &value, sizeof(value)),
        "describing a pre-activation");
  };
  PARTITA_RETURN_IF_ERROR(set_size(kLtPreactivationLeading, plan_.d.leading));
  if (plan_.batch == 1) return absl::OkStatus();
  return set_size(kLtPreactivationBatchStride, plan_.d.batch_stride);
}

absl::Status BlasProduct::SetVectors(const void* vector,
                                     const void* preactivation,
                                     const void* scale) {
  if (desc_.has_scale())
    PARTITA_RETURN_IF_ERROR(blas_.Check(
        blas_.SetMatmul(matmul_.object, kLtScaleOfA, &scale, sizeof(scale)),
        "naming the scale"));
  if (has_vector())
    PARTITA_RETURN_IF_ERROR(
        blas_.Check(blas_.SetMatmul(matmul_.object, kLtBiasPointer, &vector,
                                    sizeof(vector)),
                    "naming the bias"));
  if (!has_preactivation()) return absl::OkStatus();
  return blas_.Check(blas_.SetMatmul(matmul_.object, kLtPreactivationPointer,
                                     &preactivation, sizeof(preactivation)),
                     "naming the pre-activation");
}

absl::StatusOr<std::vector<LtHeuristic>> BlasProduct::Ask(uint32_t alignment,
                                                          int most) {
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
  // Other schemes round the partial sums of 16-bit products to 16 bits.
  PARTITA_RETURN_IF_ERROR(
      set(kLtReductionSchemes, uint32_t{kLtReduceInComputeType}));
  for (const LtPreferenceAttribute attribute :
       {kLtAlignmentA, kLtAlignmentB, kLtAlignmentC, kLtAlignmentD})
    PARTITA_RETURN_IF_ERROR(set(attribute, alignment));
  // Some versions already check the alignment of these addresses here.
  const void* const vector =
      reinterpret_cast<const void*>(uintptr_t{alignment});
  PARTITA_RETURN_IF_ERROR(SetVectors(vector, vector, vector));
  std::vector<LtHeuristic> choices(static_cast<size_t>(most));
  int found = 0;
  PARTITA_RETURN_IF_ERROR(blas_.Check(
      blas_.Heuristics(blas_.handle, matmul_.object, a_.object, b_.object,
                       d_.object, d_.object, preference.object, most,
                       choices.data(), &found),
      "looking for an algorithm"));
  choices.resize(static_cast<size_t>(std::max(found, 0)));
  choices.erase(std::remove_if(choices.begin(), choices.end(),
                               [](const LtHeuristic& choice) {
                                 return choice.state != kLtSuccess;
                               }),
                choices.end());
  if (choices.empty())
    return blas_.Check(kLtNotSupported, "looking for an algorithm");
  return choices;
}

// Number of elements from the first to the last of all matrices, gaps included.
int64_t ExtentOf(const MatrixPlan& matrix, int64_t batch) {
  return (batch - 1) * matrix.batch_stride +
         matrix.leading * (matrix.columns - 1) + matrix.rows;
}

std::string NameOf(const LtAlgorithm& algorithm) {
  std::string name;
  for (const uint64_t part : algorithm.opaque)
    absl::StrAppend(&name, absl::Hex(part, absl::kZeroPad16));
  return name;
}

absl::Status BlasProduct::Prepare(Tuner& tuner, const Context& context) {
  if (plan_.batch > std::numeric_limits<int32_t>::max())
    return absl::UnimplementedError(absl::StrCat(
        "cuBLASLt counts a batch in 32 bits, found ", plan_.batch));
  const LtDataType type = LtTypeOf(desc_.dtype);
  const LtDataType lhs = LtTypeOf(LhsType(desc_)),
                   rhs = LtTypeOf(RhsType(desc_));
  PARTITA_RETURN_IF_ERROR(MakeLayout(plan_.a, plan_.rhs_first ? rhs : lhs, a_));
  PARTITA_RETURN_IF_ERROR(MakeLayout(plan_.b, plan_.rhs_first ? lhs : rhs, b_));
  PARTITA_RETURN_IF_ERROR(MakeLayout(plan_.d, plan_.whole ? type : kLtF32, d_));
  PARTITA_RETURN_IF_ERROR(MakeMatmul());
  if (desc_.has_float8()) {
    PARTITA_ASSIGN_OR_RETURN(unaligned_, MakeOwnProduct(kernels_, desc_));
  } else {
    const absl::StatusOr<std::vector<LtHeuristic>> any =
        Ask(static_cast<uint32_t>(base::SizeOf(desc_.dtype)), 1);
    if (!any.ok() && !absl::IsUnimplemented(any.status())) return any.status();
    moves_ = !any.ok();
    if (any.ok()) any_ = any->front();
  }
  PARTITA_ASSIGN_OR_RETURN(const std::vector<LtHeuristic> choices,
                           Ask(kAligned, kCandidates));
  std::vector<std::string> names;
  for (const LtHeuristic& choice : choices)
    names.push_back(NameOf(choice.algorithm));
  aligned_ = choices[tuner.Choose(Describe(desc_), names, [&] {
    return PrepareTrial(choices, std::make_shared<Trial>(context));
  })];
  std::vector<LtHeuristic> used = {aligned_};
  std::vector<size_t> indices = {0};
  if (!moves_ && unaligned_ == nullptr) {
    used.push_back(any_);
    indices.push_back(1);
  }
  tuner.Warm(indices, [&] {
    return PrepareTrial(used, std::make_shared<Trial>(context));
  });
  if (!plan_.whole) {
    PARTITA_ASSIGN_OR_RETURN(finish_.product, ToProductArgs(desc_));
    PARTITA_ASSIGN_OR_RETURN(finish_function_,
                             kernels_->Find("partita_finish_product"));
    sums_bytes_ = (finish_.product.count * 4 + 255) / 256 * 256;
  }
  scratch_bytes_ =
      sums_bytes_ + static_cast<int64_t>(std::max(aligned_.workspace_bytes,
                                                  any_.workspace_bytes));
  if (!fuses_sums_) {
    PARTITA_ASSIGN_OR_RETURN(sums_, FactorSums::Make(kernels_, desc_));
    parts_at_ = (scratch_bytes_ + 255) / 256 * 256;
    scratch_bytes_ = parts_at_ + sums_.scratch_bytes();
  }
  if (!moves_) return absl::OkStatus();
  PlanMoves();
  PARTITA_ASSIGN_OR_RETURN(copy_, kernels_->Find("partita_copy_box"));
  return absl::OkStatus();
}

void BlasProduct::PlanMoves() {
  const int64_t size = base::SizeOf(desc_.dtype);
  const MatrixPlan& left = plan_.rhs_first ? plan_.b : plan_.a;
  const MatrixPlan& right = plan_.rhs_first ? plan_.a : plan_.b;
  moved_bytes_ = {ExtentOf(left, plan_.batch) * size,
                  ExtentOf(right, plan_.batch) * size};
  if (desc_.has_bias) moved_bytes_.push_back(desc_.n * size);
  // Residual, pre-activation and result are laid out alike.
  const int matrices = 1 + (desc_.has_residual ? 1 : 0) +
                       (desc_.preactivation != Preactivation::kNone ? 1 : 0);
  for (int i = 0; i < matrices; ++i)
    moved_bytes_.push_back(ExtentOf(plan_.d, plan_.batch) * size);
  if (desc_.sums != Sums::kNone)
    moved_bytes_.push_back((desc_.sums == Sums::kLhs ? desc_.m : desc_.n) *
                           size);
  for (int i = 0; i < operands(); ++i) {
    scratch_bytes_ = (scratch_bytes_ + 255) / 256 * 256;
    moved_at_.push_back(scratch_bytes_);
    if (IsLibraryOperand(i))
      scratch_bytes_ += moved_bytes_[static_cast<size_t>(i)];
  }
}

absl::Status BlasProduct::Move(CuStream stream, void* const* buffers,
                               char* scratch, std::vector<void*>& moved,
                               bool back) const {
  moved.assign(buffers, buffers + operands());
  for (int i = back ? places_.out : 0; i < operands(); ++i) {
    const size_t at = static_cast<size_t>(i);
    if (!IsLibraryOperand(i) || IsAligned(buffers + i, 1)) continue;
    moved[at] = scratch + moved_at_[at];
    // Results are copied in too, because gaps between its rows may hold other
    // data.
    PARTITA_RETURN_IF_ERROR(
        kernels_->Copy(stream, copy_, back ? moved[at] : buffers[i],
                       back ? buffers[i] : moved[at], moved_bytes_[at]));
  }
  return absl::OkStatus();
}

// Returns null if there is not enough memory.
Tuner::Run BlasProduct::PrepareTrial(const std::vector<LtHeuristic>& choices,
                                     std::shared_ptr<Trial> memory) {
  const int64_t size = base::SizeOf(desc_.dtype);
  const MatrixPlan& left = plan_.rhs_first ? plan_.b : plan_.a;
  const MatrixPlan& right = plan_.rhs_first ? plan_.a : plan_.b;
  size_t workspace_bytes = 0;
  for (const LtHeuristic& choice : choices)
    workspace_bytes = std::max(workspace_bytes, choice.workspace_bytes);
  void* const lhs =
      memory->Make(ExtentOf(left, plan_.batch) * base::SizeOf(LhsType(desc_)));
  void* const rhs =
      memory->Make(ExtentOf(right, plan_.batch) * base::SizeOf(RhsType(desc_)));
  void* const d =
      memory->Make(ExtentOf(plan_.d, plan_.batch) * (plan_.whole ? size : 4));
  void* const vector = memory->Make(std::max(desc_.m, desc_.n) * size);
  void* const preactivation =
      has_preactivation() ? memory->Make(ExtentOf(plan_.d, plan_.batch) * size)
                          : vector;
  void* const scale = memory->Make(sizeof(float));
  void* const workspace = memory->Make(static_cast<int64_t>(workspace_bytes));
  if (!lhs || !rhs || !d || !vector || !preactivation || !scale || !workspace)
    return nullptr;
  if (!SetVectors(vector, preactivation, scale).ok()) return nullptr;
  return [=, &choices](size_t index, CuStream stream) {
    static_cast<void>(memory);  // freed with this function
    return Multiply(stream, choices[index], lhs, rhs, d, d, workspace);
  };
}

bool BlasProduct::IsAligned(void* const* buffers, int count) {
  for (int i = 0; i < count; ++i)
    if (reinterpret_cast<uintptr_t>(buffers[i]) % kAligned != 0) return false;
  return true;
}

absl::Status BlasProduct::Multiply(CuStream stream, const LtHeuristic& choice,
                                   const void* lhs, const void* rhs,
                                   const void* c, void* d, void* workspace) {
  const bool adds = plan_.whole && desc_.has_residual;
  const float alpha = 1, beta = adds ? 1 : 0;
  return blas_.Check(
      blas_.Multiply(blas_.handle, matmul_.object, &alpha,
                     plan_.rhs_first ? rhs : lhs, a_.object,
                     plan_.rhs_first ? lhs : rhs, b_.object, &beta, c,
                     d_.object, d, d_.object, &choice.algorithm, workspace,
                     choice.workspace_bytes, stream),
      "multiplying");
}

absl::Status BlasProduct::Run(CuStream stream, void* const* buffers,
                              void* scratch) {
  char* const bytes = static_cast<char*>(scratch);
  const bool aligned = IsAligned(buffers, operands());
  if (!aligned && unaligned_ != nullptr)
    return unaligned_->Run(stream, buffers, scratch);
  if (aligned || !moves_) {
    PARTITA_RETURN_IF_ERROR(
        Run(stream, aligned ? aligned_ : any_, buffers, scratch));
  } else {
    std::vector<void*> moved;
    PARTITA_RETURN_IF_ERROR(Move(stream, buffers, bytes, moved, false));
    PARTITA_RETURN_IF_ERROR(Run(stream, aligned_, moved.data(), scratch));
    PARTITA_RETURN_IF_ERROR(Move(stream, buffers, bytes, moved, true));
  }
  return sums_.Run(stream, buffers, bytes + parts_at_);
}

absl::Status BlasProduct::Run(CuStream stream, const LtHeuristic& choice,
                              void* const* buffers, void* scratch) {
  const auto at = [&](int place) {
    return place < 0 ? nullptr : buffers[place];
  };
  PARTITA_RETURN_IF_ERROR(
      SetVectors(at(desc_.has_bias ? places_.bias : places_.sums),
                 at(places_.preactivation), at(places_.scale)));
  const bool adds = plan_.whole && desc_.has_residual;
  void* const d = plan_.whole ? at(places_.out) : scratch;
  const void* const c = adds ? at(places_.residual) : d;
  PARTITA_RETURN_IF_ERROR(Multiply(stream, choice, buffers[0], buffers[1], c, d,
                                   static_cast<char*>(scratch) + sums_bytes_));
  if (plan_.whole) return absl::OkStatus();
  finish_.sums = static_cast<const float*>(scratch);
  SetOperands(desc_, buffers, finish_.product);
  return kernels_->Launch(stream, finish_function_, &finish_,
                          finish_.product.count);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaOp>> MakeBlasProduct(
    const Blas& blas, std::shared_ptr<const OwnKernels> kernels, Tuner& tuner,
    const GemmDesc& desc, absl::Status& unfinished) {
  const bool activates = desc.activation != device::Activation::kNone;
  const auto make =
      [&](const ProductPlan& plan,
          bool fuses_sums) -> absl::StatusOr<std::unique_ptr<CudaOp>> {
    auto product =
        std::make_unique<BlasProduct>(blas, kernels, desc, plan, fuses_sums);
    PARTITA_RETURN_IF_ERROR(product->Prepare(tuner, tuner.context()));
    return std::unique_ptr<CudaOp>(std::move(product));
  };
  unfinished = absl::OkStatus();
  const std::optional<ProductPlan> plan = PlanProduct(desc);
  if (!plan)
    return absl::UnimplementedError(
        desc.has_float8()
            ? "expected floats of 8 bits with contiguous k, and sizes that are "
              "multiples of 16"
            : "expected a matrix with contiguous rows or columns, found "
              "neither");
  absl::StatusOr<std::unique_ptr<CudaOp>> product =
      make(*plan, /*fuses_sums=*/true);
  const absl::Status& status = product.status();
  const bool may_finish_itself =
      (plan->whole && activates) || desc.sums != device::Sums::kNone;
  // Libraries that do not know an epilogue or its attributes call them invalid,
  // which is an internal error.
  const bool is_refused =
      absl::IsUnimplemented(status) || absl::IsInternal(status);
  if (!is_refused || !may_finish_itself) return product;
  unfinished = status;
  return make(*PlanProduct(desc, /*finishes=*/!activates),
              /*fuses_sums=*/false);
}

}  // namespace partita::cuda
