// Prepares and runs the library operations of one device. Holds the loaded
// libraries and the scratch that operations and launches share.
#ifndef PARTITA_RUNTIME_CUDA_WORKSHOP_H_
#define PARTITA_RUNTIME_CUDA_WORKSHOP_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/attention.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/library_op.h"
#include "runtime/cuda/own_ops.h"
#include "runtime/cuda/scratch.h"
#include "runtime/cuda/sparse.h"
#include "runtime/cuda/tuner.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

class Workshop {
 public:
  // `blas`, `dnn` and `sparse` are the libraries to open. Empty: the installed
  // ones, if any. "none": no library.
  Workshop(std::shared_ptr<Context> context, std::string blas, std::string dnn,
           std::string sparse, TunerOptions tuning, AttentionBy attention)
      : context_(std::move(context)),
        blas_path_(std::move(blas)),
        dnn_path_(std::move(dnn)),
        sparse_path_(std::move(sparse)),
        scratch_(context_, "the scratch of operations"),
        tuner_(context_, std::move(tuning)),
        attention_(attention) {}
  Workshop(const Workshop&) = delete;
  ~Workshop();

  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareGemm(
      const device::GemmDesc& desc, const std::vector<const void*>& constants);
  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareConv(
      const device::ConvDesc& desc);
  // Null if the kernel is to be launched (device::Device::PrepareAttention).
  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareAttention(
      const device::AttentionDesc& desc, AttentionLaunch launch);
  absl::Status Execute(CudaOp& op, CuStream stream, void* const* buffers,
                       int count);
  // Operations that run on Partita's own kernels although a library should run
  // them, one sentence per kind and reason; products with 2:4 weights that are
  // multiplied as dense ones; and operations that could not be warmed
  // (CudaOptions::warms).
  std::vector<std::string> Warnings() const;
  // The scratch of all operations and launches.
  Scratch& scratch() { return scratch_; }
  const Scratch& scratch() const { return scratch_; }
  // Call these around a capture: the stream owns the scratch meanwhile. Around
  // a replay, call HandOver and Mark.
  absl::Status BeginCapture(CuStream stream);
  void EndCapture() { capturing_ = false; }
  // Gives the scratch to `stream`, which waits for the scratch's previous user.
  // One stream owns the scratch at a time.
  absl::Status HandOver(CuStream stream);
  // Records that work on the stream so far may use the scratch.
  absl::Status Mark(CuStream stream);

  // Puts work on the stream that uses `bytes` of the scratch.
  absl::Status WithScratch(CuStream stream, int64_t bytes,
                           const std::function<absl::Status(void*)>& work);

 private:
  absl::Status LoadKernels();
  // Reserves the scratch that the operation needs.
  absl::StatusOr<std::unique_ptr<device::LibraryOp>> ReserveScratch(
      absl::StatusOr<std::unique_ptr<CudaOp>> op);

  const std::shared_ptr<Context> context_;
  template <typename L>
  struct Opened {
    std::unique_ptr<L> library;  // null: it cannot be used
    std::string reason;
  };
  // Returns the library at `path`, opened once. Null if it cannot be used.
  template <typename L>
  absl::StatusOr<const L*> Find(const std::string& path,
                                std::optional<Opened<L>>& opened);
  // Counts an operation that the library refuses or that has no library.
  template <typename L>
  void CountFallback(const std::string& path, const char* what,
                     const std::optional<Opened<L>>& opened,
                     const absl::Status& refused);

  // Replaces the product by one of cuSPARSELt if its weight has the 2:4 pattern
  // and the library can be used.
  absl::Status UseSparseWeight(const device::GemmDesc& desc,
                               const std::vector<const void*>& constants,
                               std::unique_ptr<CudaOp>& op);

  const std::string blas_path_, dnn_path_, sparse_path_;
  Scratch scratch_;
  Tuner tuner_;
  const AttentionBy attention_;
  std::optional<Opened<Blas>> blas_;  // none: not opened yet
  std::optional<Opened<Dnn>> dnn_;
  std::optional<Opened<Sparse>> sparse_;
  std::map<std::pair<std::string, std::string>, int> fallbacks_;
  std::map<std::string, int> unfinished_;  // products, by the library's reason
  std::map<std::string, int> dense_;  // products with 2:4 weights, by reason
  std::shared_ptr<const OwnKernels> kernels_;
  CuStream user_ = nullptr;  // stream that owns the scratch
  CuEvent handed_over_ = nullptr;
  bool capturing_ = false;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_WORKSHOP_H_
