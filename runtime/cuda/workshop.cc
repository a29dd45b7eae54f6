// Tries the libraries first, then the runtime's own kernels.
#include "runtime/cuda/workshop.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/conv.h"
#include "runtime/cuda/gemm.h"
#include "runtime/cuda/sparse_product.h"

namespace partita::cuda {

Workshop::~Workshop() {
  if (!context_->Enter().ok()) return;
  if (handed_over_ != nullptr) context_->driver().DestroyEvent(handed_over_);
}

absl::Status Workshop::LoadKernels() {
  if (kernels_ != nullptr) return absl::OkStatus();
  PARTITA_ASSIGN_OR_RETURN(kernels_, OwnKernels::Load(context_));
  return absl::OkStatus();
}

template <typename L>
absl::StatusOr<const L*> Workshop::Find(const std::string& path,
                                        std::optional<Opened<L>>& opened) {
  if (path == "none") return nullptr;
  if (!opened) {
    absl::StatusOr<std::unique_ptr<L>> found =
        L::Open(path, context_->driver().version);
    if (!found.ok() && !path.empty()) return found.status();
    opened.emplace();
    if (found.ok()) {
      opened->library = *std::move(found);
    } else {
      opened->reason = std::string(found.status().message());
    }
  }
  return opened->library.get();
}

template <typename L>
void Workshop::CountFallback(const std::string& path, const char* what,
                             const std::optional<Opened<L>>& opened,
                             const absl::Status& refused) {
  if (path == "none") return;  // as the caller wants
  const std::string reason = opened && opened->library == nullptr
                                 ? opened->reason
                                 : std::string(refused.message());
  ++fallbacks_[{what, reason}];
}

std::vector<std::string> Workshop::Warnings() const {
  std::vector<std::string> warnings;
  for (const auto& [what, count] : fallbacks_)
    warnings.push_back(absl::StrCat(
        count, " ", what.first, count == 1 ? " runs" : "s run",
        " on Partita's own kernels, which are many times slower than the "
        "library's: ",
        what.second));
  for (const auto& [reason, count] : unfinished_)
    warnings.push_back(absl::StrCat(
        "the library multiplies without the activation or the sums of ", count,
        " matrix ", count == 1 ? "product" : "products",
        ", which Partita's own kernels compute in passes of their own: ",
        reason));
  for (const auto& [reason, count] : dense_)
    warnings.push_back(absl::StrCat(
        count, " matrix ", count == 1 ? "product has" : "products have",
        " a weight in which at least two of four numbers are 0 (2:4), and ",
        count == 1 ? "is" : "are",
        " not computed at the GPU's double rate: ", reason));
  if (const int cold = tuner_.cold(); cold > 0)
    warnings.push_back(absl::StrCat(
        cold, cold == 1 ? " operation" : " operations",
        " could not run before the first step, since the GPU's memory is full "
        "or the library failed; if the first step hangs, set "
        "CUDA_MODULE_LOADING=EAGER, which loads all kernels at the start"));
  return warnings;
}

absl::StatusOr<std::unique_ptr<device::LibraryOp>> Workshop::PrepareGemm(
    const device::GemmDesc& desc, const std::vector<const void*>& constants) {
  if (desc.has_bytes() && !desc.has_float8())
    return absl::UnimplementedError(
        "expected a matrix product of floats, found integers of 8 bits, which "
        "GPUs do not support yet: compile the model for this GPU again");
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  PARTITA_RETURN_IF_ERROR(LoadKernels());
  PARTITA_ASSIGN_OR_RETURN(const Blas* const blas, Find(blas_path_, blas_));
  absl::StatusOr<std::unique_ptr<CudaOp>> op =
      absl::UnimplementedError("no library");
  absl::Status unfinished;
  if (blas != nullptr)
    op = MakeBlasProduct(*blas, kernels_, tuner_, desc, unfinished);
  if (absl::IsUnimplemented(op.status())) {
    CountFallback(blas_path_, "matrix product", blas_, op.status());
    op = MakeOwnProduct(kernels_, desc);
  } else if (!unfinished.ok()) {
    ++unfinished_[std::string(unfinished.message())];
  }
  if (op.ok()) PARTITA_RETURN_IF_ERROR(UseSparseWeight(desc, constants, *op));
  return ReserveScratch(std::move(op));
}

absl::Status Workshop::UseSparseWeight(
    const device::GemmDesc& desc, const std::vector<const void*>& constants,
    std::unique_ptr<CudaOp>& op) {
  if (sparse_path_ == "none") return absl::OkStatus();
  PARTITA_ASSIGN_OR_RETURN(const Sparse* const sparse,
                           Find(sparse_path_, sparse_));
  PARTITA_ASSIGN_OR_RETURN(const bool has_pattern,
                           HasTwoOfFourWeight(desc, constants, *context_,
                                              /*sample=*/sparse == nullptr));
  if (!has_pattern) return absl::OkStatus();
  if (sparse == nullptr) {
    ++dense_[sparse_->reason];
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<CudaOp>> product =
      MakeSparseProduct(*sparse, context_, tuner_, desc, constants, op);
  if (absl::IsUnimplemented(product.status())) {
    ++dense_[std::string(product.status().message())];
    return absl::OkStatus();
  }
  PARTITA_RETURN_IF_ERROR(product.status());
  op = *std::move(product);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<device::LibraryOp>> Workshop::PrepareConv(
    const device::ConvDesc& desc) {
  if (desc.has_bytes())
    return absl::UnimplementedError(
        "expected a convolution of equal element types, found factors of 8 "
        "bits, which GPUs do not support yet: compile the model for this GPU "
        "again");
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  PARTITA_RETURN_IF_ERROR(LoadKernels());
  PARTITA_ASSIGN_OR_RETURN(const Dnn* const dnn, Find(dnn_path_, dnn_));
  absl::StatusOr<std::unique_ptr<CudaOp>> op =
      absl::UnimplementedError("no library");
  if (dnn != nullptr) op = MakeDnnConv(*dnn, kernels_, tuner_, desc);
  if (absl::IsUnimplemented(op.status())) {
    CountFallback(dnn_path_, "convolution", dnn_, op.status());
    op = MakeOwnConv(kernels_, desc);
  }
  return ReserveScratch(std::move(op));
}

// The compiler's kernel is no slow path, so it needs no warning when it runs
// for whatever reason.
absl::StatusOr<std::unique_ptr<device::LibraryOp>> Workshop::PrepareAttention(
    const device::AttentionDesc& desc, AttentionLaunch launch) {
  // Without measurements all ranks launch, and compute the same bits.
  if (!tuner_.measures() || attention_ == AttentionBy::kLaunch)
    return std::unique_ptr<device::LibraryOp>();
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  PARTITA_ASSIGN_OR_RETURN(const Dnn* const dnn, Find(dnn_path_, dnn_));
  const bool may_launch = attention_ == AttentionBy::kFaster;
  if (dnn == nullptr ||
      (may_launch && IsLaunchKept(*dnn, tuner_, desc, launch)))
    return std::unique_ptr<device::LibraryOp>();
  absl::StatusOr<std::unique_ptr<CudaOp>> op =
      MakeDnnAttention(*dnn, tuner_, desc, std::move(launch), may_launch);
  if (!op.ok() || *op == nullptr) return std::unique_ptr<device::LibraryOp>();
  return ReserveScratch(std::move(op));
}

absl::StatusOr<std::unique_ptr<device::LibraryOp>> Workshop::ReserveScratch(
    absl::StatusOr<std::unique_ptr<CudaOp>> op) {
  PARTITA_RETURN_IF_ERROR(op.status());
  PARTITA_RETURN_IF_ERROR(scratch_.Reserve((*op)->scratch_bytes()));
  return std::unique_ptr<device::LibraryOp>(*std::move(op));
}

absl::Status Workshop::BeginCapture(CuStream stream) {
  PARTITA_RETURN_IF_ERROR(HandOver(stream));
  capturing_ = true;
  return absl::OkStatus();
}

absl::Status Workshop::Mark(CuStream stream) {
  // Other streams cannot wait for an event recorded during capture.
  if (capturing_ || handed_over_ == nullptr) return absl::OkStatus();
  return context_->Check(context_->driver().RecordEvent(handed_over_, stream),
                         "marking the end of an operation");
}

absl::Status Workshop::HandOver(CuStream stream) {
  if (user_ == stream) return absl::OkStatus();
  if (capturing_)
    return absl::FailedPreconditionError(
        "expected a graph to use the scratch on one stream, found two");
  const Driver& cuda = context_->driver();
  if (handed_over_ == nullptr) {
    PARTITA_RETURN_IF_ERROR(context_->Check(
        cuda.CreateEvent(&handed_over_, kCuEventNoTiming), "making an event"));
  } else {
    PARTITA_RETURN_IF_ERROR(context_->Check(
        cuda.WaitEvent(stream, handed_over_, 0), "waiting for the scratch"));
  }
  user_ = stream;
  return absl::OkStatus();
}

absl::Status Workshop::Execute(CudaOp& op, CuStream stream,
                               void* const* buffers, int count) {
  if (count != op.operands())
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", op.operands(), " buffers, found ", count));
  if (op.scratch_bytes() == 0) return op.Run(stream, buffers, nullptr);
  return WithScratch(stream, op.scratch_bytes(), [&](void* scratch) {
    return op.Run(stream, buffers, scratch);
  });
}

absl::Status Workshop::WithScratch(
    CuStream stream, int64_t bytes,
    const std::function<absl::Status(void*)>& work) {
  if (bytes > scratch_.bytes())
    return absl::InternalError(absl::StrCat(
        "expected ", bytes, " bytes of scratch, found ", scratch_.bytes()));
  PARTITA_RETURN_IF_ERROR(HandOver(stream));
  PARTITA_RETURN_IF_ERROR(work(scratch_.data()));
  return Mark(stream);
}

}  // namespace partita::cuda
