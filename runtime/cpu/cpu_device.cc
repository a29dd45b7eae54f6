// The CPU device. A stream is the calling thread: work is done when the call
// returns, and every event has been reached.
#include "runtime/cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/processors.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/conv.h"
#include "runtime/cpu/convert_op.h"
#include "runtime/cpu/depthwise_grad.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/grouped_gemm.h"
#include "runtime/cpu/grouped_weight_grad.h"
#include "runtime/cpu/int4_gemm.h"
#include "runtime/cpu/int8_conv.h"
#include "runtime/cpu/int8_gemm.h"
#include "runtime/cpu/library_op.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/module.h"
#include "runtime/cpu/row_product.h"
#include "runtime/cpu/split_conv.h"
#include "runtime/cpu/split_product.h"
#include "runtime/cpu/threads.h"
#include "runtime/program/target.h"
#include "runtime/program/validate.h"

namespace partita::cpu {
namespace {

using device::Event;
using device::Stream;

// Arguments of one launch, shared by its threads.
struct LaunchShares {
  program::KernelFunction function;
  void* const* buffers;
  int64_t range;
  int64_t shares;
  char* scratch;
  int64_t scratch_stride;
  const device::LaunchPieces* pieces = nullptr;  // null: one piece
  int count = 0;                                 // buffers of all pieces
};

// Runs the part [begin, end) of the concatenated ranges of all pieces.
void RunPieces(const LaunchShares& launch, int64_t begin, int64_t end,
               void* scratch) {
  const device::LaunchPieces& pieces = *launch.pieces;
  void* piece_buffers[program::kMaxPieceOperands];
  for (size_t i = 0; i < pieces.ranges.size() && end > 0; ++i) {
    const int64_t range = pieces.ranges[i];
    if (begin < range) {
      device::GatherPiece(pieces, static_cast<int>(i), launch.buffers,
                          launch.count, piece_buffers);
      launch.function(piece_buffers, begin, std::min(end, range), scratch);
    }
    begin = std::max<int64_t>(begin - range, 0);
    end -= range;
  }
}

void RunShare(void* data, int thread, int threads) {
  const LaunchShares& launch = *static_cast<const LaunchShares*>(data);
  const int64_t shares = std::min<int64_t>(launch.shares, threads);
  if (thread >= shares) return;
  const int64_t begin = launch.range / shares * thread +
                        std::min<int64_t>(launch.range % shares, thread);
  const int64_t end =
      begin + launch.range / shares + (thread < launch.range % shares ? 1 : 0);
  char* scratch = launch.scratch == nullptr
                      ? nullptr
                      : launch.scratch + thread * launch.scratch_stride;
  if (launch.pieces != nullptr)
    RunPieces(launch, begin, end, scratch);
  else
    launch.function(launch.buffers, begin, end, scratch);
}

// A rough estimate of an operation's time on one thread. It decides whether
// waking the other threads pays off.
struct Cost {
  double flops = 0;
  double bytes = 0;
  double Microseconds() const { return std::max(flops / 100e3, bytes / 30e3); }
};
constexpr double kMinParallelMicroseconds = 8;

Cost CostOf(const device::GemmDesc& desc) {
  const double rows =
      static_cast<double>(desc.batch) * static_cast<double>(desc.m);
  const double weights =
      static_cast<double>(desc.k) * static_cast<double>(desc.n);
  const double bytes = desc.factors == device::Factors::kRhsI4 ? 0.5
                       : desc.has_bytes()
                           ? 1
                           : static_cast<double>(base::SizeOf(desc.dtype));
  return {2 * rows * weights, weights * bytes};
}

Cost CostOf(const device::GroupedGemmDesc& desc) {
  const double matrix =
      static_cast<double>(desc.k) * static_cast<double>(desc.n);
  return {2 * static_cast<double>(desc.rows) * matrix,
          static_cast<double>(std::min(desc.rows, desc.groups)) * matrix *
              static_cast<double>(base::SizeOf(desc.dtype))};
}

Cost CostOf(const device::ConvDesc& desc) {
  double flops = 2;
  double bytes = static_cast<double>(base::SizeOf(desc.dtype));
  for (const int64_t size : desc.out_shape) flops *= static_cast<double>(size);
  for (size_t i = 1; i < desc.weight_shape.size(); ++i)
    flops *= static_cast<double>(desc.weight_shape[i]);
  for (const int64_t size : desc.input_shape)
    bytes *= static_cast<double>(size);
  return {flops, bytes};
}

class CpuDevice : public device::Device {
 public:
  CpuDevice(int threads, std::unique_ptr<DnnlContext> context)
      : threads_(threads), context_(std::move(context)) {}

  std::string Name() const override { return "cpu"; }

  absl::Status CheckTarget(const std::string& target,
                           const std::string& features) const override {
    if (target != program::kCpuTarget) {
      return absl::FailedPreconditionError(
          absl::StrCat("the model was compiled for target '", target,
                       "', this device is 'cpu'"));
    }
    return CheckFeatures(features, HostFlags());
  }

  bool SharesHostMemory() const override { return true; }
  bool KeepsContent() const override { return true; }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    absl::StatusOr<void*> memory = AllocatePages(bytes);
    if (memory.ok()) allocated_ += bytes;
    return memory;
  }
  void Free(void* memory, int64_t bytes) override {
    FreePages(memory, bytes);
    allocated_ -= bytes;
  }
  void Release(void* memory, int64_t bytes) override {
    ReleasePages(memory, bytes);
  }

  device::MemoryReport Memory() const override {
    return {allocated_, context_->packed_bytes, scratch_.bytes()};
  }

  absl::StatusOr<std::unique_ptr<Stream>> CreateStream() override {
    return std::make_unique<Stream>();
  }
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override {
    return std::make_unique<Event>();
  }
  absl::Status Record(Stream& stream, Event& event) override {
    return absl::OkStatus();
  }
  absl::Status Wait(Stream& stream, Event& event) override {
    return absl::OkStatus();
  }
  absl::Status Synchronize(Stream& stream) override { return absl::OkStatus(); }
  absl::Status Synchronize(Event& event) override { return absl::OkStatus(); }

  absl::Status CopyToDevice(Stream& stream, void* target, const void* host,
                            int64_t bytes) override {
    return Copy(stream, target, host, bytes);
  }
  absl::Status CopyToHost(Stream& stream, void* host, const void* source,
                          int64_t bytes) override {
    return Copy(stream, host, source, bytes);
  }
  absl::Status Copy(Stream& stream, void* target, const void* source,
                    int64_t bytes) override {
    // Source and target may be the same buffer.
    if (bytes > 0) std::memmove(target, source, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<device::Module>> LoadModule(
      std::string_view code) override {
    PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<CpuModule> module,
                             CpuModule::Load(code));
    return std::unique_ptr<device::Module>(std::move(module));
  }

  absl::Status ReserveLaunchScratch(int64_t bytes_per_thread) override {
    int64_t bytes;
    if (__builtin_mul_overflow(AlignUp(bytes_per_thread), threads_, &bytes)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("scratch of ", bytes_per_thread, " bytes for ", threads_,
                       " threads is too big"));
    }
    return scratch_.Reserve(bytes);
  }

  absl::Status Launch(Stream& stream, const device::Kernel& kernel,
                      const device::LaunchShape& shape, void* const* buffers,
                      int count) override {
    return RunLaunch(kernel, shape, nullptr, buffers, count);
  }
  absl::Status LaunchEach(Stream& stream, const device::Kernel& kernel,
                          const device::LaunchShape& shape,
                          const device::LaunchPieces& pieces,
                          void* const* buffers, int count) override {
    const int64_t each = count / static_cast<int64_t>(pieces.ranges.size());
    if (each > program::kMaxPieceOperands) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected at most ", program::kMaxPieceOperands,
                       " operands of each piece of a launch, found ", each));
    }
    return RunLaunch(kernel, shape, &pieces, buffers, count);
  }

  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareGemm(
      const device::GemmDesc& desc,
      const std::vector<const void*>& constants) override {
    if (desc.is_for_training())
      return absl::UnimplementedError(
          "a CPU's product has no pre-activation and no sums; expected a "
          "program that was compiled for CPUs");
    if (desc.has_float8())
      return absl::UnimplementedError(
          "a CPU's product has no factors of f8; expected a program that was "
          "compiled for CPUs");
    const int threads = ThreadsFor(CostOf(desc));
    const OpenMpThreads regions(threads);
    if (!desc.has_bytes() && IsRowProduct(desc)) {
      PARTITA_ASSIGN_OR_RETURN(
          std::unique_ptr<CpuOp> op,
          MakeRowProduct(*context_, desc, constants[1], threads));
      if (op != nullptr) return Finish(std::move(op), threads);
    }
    if (desc.factors == device::Factors::kRhsI8)
      return Finish(MakeInt8WeightGemm(*context_, desc, threads), threads);
    if (desc.factors == device::Factors::kRhsI4)
      return Finish(MakeInt4WeightGemm(*context_, desc, threads), threads);
    PARTITA_ASSIGN_OR_RETURN(
        std::unique_ptr<CpuOp> split,
        MakeSplitProduct(*context_, desc, constants[1], threads));
    if (split != nullptr) return Finish(std::move(split), threads);
    absl::StatusOr<std::unique_ptr<CpuOp>> op =
        MakeGemm(*context_, desc, {constants[1], constants[1]});
    if (absl::IsUnimplemented(op.status()) && !desc.has_bytes() &&
        desc.dtype != base::DType::kF32)
      op = MakeConvertedGemm(*context_, desc, constants[1]);
    return Finish(std::move(op), threads);
  }

  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareGroupedGemm(
      const device::GroupedGemmDesc& desc,
      const std::vector<const void*>& constants) override {
    const int threads = ThreadsFor(CostOf(desc));
    return Finish(desc.weight_grad
                      ? MakeGroupedWeightGrad(*context_, desc, threads)
                      : MakeGroupedGemm(*context_, desc, constants[1], threads),
                  threads);
  }

  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareConv(
      const device::ConvDesc& desc,
      const std::vector<const void*>& constants) override {
    const int threads = ThreadsFor(CostOf(desc));
    const OpenMpThreads regions(threads);
    if (desc.has_bytes())
      return Finish(MakeInt8Conv(*context_, desc, constants), threads);
    if (std::unique_ptr<CpuOp> own = MakeDepthwiseWeightGrad(desc, threads))
      return Finish(std::move(own), threads);
    const void* const weight =
        desc.direction == device::ConvDirection::kWeightGrad ? nullptr
                                                             : constants[1];
    PARTITA_ASSIGN_OR_RETURN(
        std::unique_ptr<CpuOp> split,
        MakeSplitPointwiseConv(*context_, desc, weight, threads));
    if (split == nullptr) {
      PARTITA_ASSIGN_OR_RETURN(
          split, MakeSplitWindowConv(*context_, desc, weight, threads));
    }
    if (split != nullptr) return Finish(std::move(split), threads);
    absl::StatusOr<std::unique_ptr<CpuOp>> op =
        MakeConv(*context_, desc, {weight, weight});
    if (absl::IsUnimplemented(op.status()) && desc.dtype != base::DType::kF32)
      op = MakeConvertedConv(*context_, desc, weight);
    return Finish(std::move(op), threads);
  }

  absl::Status Execute(Stream& stream, device::LibraryOp& op,
                       void* const* buffers, int count) override {
    CpuOp& cpu_op = static_cast<CpuOp&>(op);
    const OpenMpThreads regions(cpu_op.threads());
    return cpu_op.Run(buffers, scratch_.data());
  }

 private:
  absl::Status RunLaunch(const device::Kernel& kernel,
                         const device::LaunchShape& shape,
                         const device::LaunchPieces* pieces,
                         void* const* buffers, int count) {
    if (shape.range <= 0) return absl::OkStatus();
    LaunchShares launch = {static_cast<const CpuKernel&>(kernel).function,
                           buffers,
                           shape.range,
                           0,
                           shape.scratch_bytes > 0 ? scratch_.data() : nullptr,
                           AlignUp(shape.scratch_bytes),
                           pieces,
                           count};
    launch.shares = std::clamp<int64_t>(shape.range / shape.grain, 1, threads_);
    RunOnThreads(launch.shares == 1 ? 1 : threads_, &RunShare, &launch);
    return absl::OkStatus();
  }

  // One thread or all: libgomp ends threads when a region uses fewer than the
  // last.
  int ThreadsFor(const Cost& cost) const {
    return cost.Microseconds() < kMinParallelMicroseconds ? 1 : threads_;
  }

  absl::StatusOr<std::unique_ptr<device::LibraryOp>> Finish(
      absl::StatusOr<std::unique_ptr<CpuOp>> op, int threads) {
    if (!op.ok()) return op.status();
    (*op)->set_threads(threads);
    PARTITA_RETURN_IF_ERROR(scratch_.Reserve((*op)->scratch_bytes()));
    return std::unique_ptr<device::LibraryOp>(*std::move(op));
  }

  const int threads_;
  std::unique_ptr<DnnlContext> context_;
  Scratch scratch_;
  int64_t allocated_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<device::Device>> MakeCpuDevice(
    const CpuOptions& options) {
  if (options.threads < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("expected a number of threads, found ", options.threads));
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<DnnlContext> context,
                           DnnlContext::Create());
  const int threads =
      options.threads > 0 ? options.threads : base::AvailableProcessors();
  return std::unique_ptr<device::Device>(
      std::make_unique<CpuDevice>(threads, std::move(context)));
}

}  // namespace partita::cpu
