// Where library operations of one device are prepared and run: what is loaded
// for them, and the scratch that they share.
#ifndef PARTITA_RUNTIME_CUDA_WORKSHOP_H_
#define PARTITA_RUNTIME_CUDA_WORKSHOP_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/library_op.h"
#include "runtime/cuda/own_ops.h"
#include "runtime/cuda/scratch.h"
#include "runtime/cuda/tuner.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

class Workshop {
 public:
  // `blas` and `dnn` are the libraries to open; empty: those that are
  // installed, if any; "none": none. `tuned` and `measures` are a Tuner's.
  Workshop(std::shared_ptr<Context> context, std::string blas, std::string dnn,
           std::string tuned, bool measures)
      : context_(std::move(context)),
        blas_path_(std::move(blas)),
        dnn_path_(std::move(dnn)),
        scratch_(context_, "what operations need while they run"),
        tuner_(context_, std::move(tuned), measures) {}
  Workshop(const Workshop&) = delete;
  ~Workshop();

  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareGemm(
      const device::GemmDesc& desc);
  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareConv(
      const device::ConvDesc& desc);
  absl::Status Execute(CudaOp& op, CuStream stream, void* const* buffers,
                       int count);
  // Of all operations and launches.
  Scratch& scratch() { return scratch_; }
  const Scratch& scratch() const { return scratch_; }
  // Before and after what a graph holds is captured: the stream has the scratch
  // to itself. Around its replay: HandOver, Mark.
  absl::Status BeginCapture(CuStream stream);
  void EndCapture() { capturing_ = false; }
  // The scratch is one stream's at a time.
  absl::Status HandOver(CuStream stream);
  // What is on the stream by now may use the scratch.
  absl::Status Mark(CuStream stream);

  // Puts work on the stream that uses so much of the scratch.
  absl::Status WithScratch(CuStream stream, int64_t bytes,
                           const std::function<absl::Status(void*)>& work);

 private:
  absl::Status LoadKernels();
  // Makes room for what it needs while it runs.
  absl::StatusOr<std::unique_ptr<device::LibraryOp>> Keep(
      absl::StatusOr<std::unique_ptr<CudaOp>> op);

  const std::shared_ptr<Context> context_;
  // The library at `path`, opened once; null where there is none.
  template <typename L>
  absl::StatusOr<const L*> Find(const std::string& path,
                                std::optional<std::unique_ptr<L>>& library);

  const std::string blas_path_, dnn_path_;
  Scratch scratch_;
  Tuner tuner_;
  // None: not looked for yet; null: not installed.
  std::optional<std::unique_ptr<Blas>> blas_;
  std::optional<std::unique_ptr<Dnn>> dnn_;
  std::shared_ptr<const OwnKernels> kernels_;
  CuStream user_ = nullptr;  // of the scratch
  CuEvent handed_over_ = nullptr;
  bool capturing_ = false;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_WORKSHOP_H_
