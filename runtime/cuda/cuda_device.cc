// The device: thin wrappers of driver calls.
#include "runtime/cuda/cuda_device.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/library_op.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/ranges.h"
#include "runtime/cuda/staging.h"
#include "runtime/cuda/tensor_maps.h"
#include "runtime/cuda/workshop.h"
#include "runtime/program/piece_table.h"

namespace partita::cuda {
namespace {

class CudaStream : public device::Stream {
 public:
  CudaStream(std::shared_ptr<Context> context, CuStream stream)
      : context_(std::move(context)), stream_(stream) {}
  ~CudaStream() override {
    if (context_->Enter().ok()) context_->driver().DestroyStream(stream_);
  }
  void* native_handle() const override { return stream_; }
  CuStream get() const { return stream_; }

 private:
  const std::shared_ptr<Context> context_;
  const CuStream stream_;
};

class CudaEvent : public device::Event {
 public:
  CudaEvent(std::shared_ptr<Context> context, CuEvent event)
      : context_(std::move(context)), event_(event) {}
  ~CudaEvent() override {
    if (context_->Enter().ok()) context_->driver().DestroyEvent(event_);
  }
  CuEvent get() const { return event_; }

 private:
  const std::shared_ptr<Context> context_;
  const CuEvent event_;
};

CuStream Of(device::Stream& stream) {
  return static_cast<CudaStream&>(stream).get();
}
CuEvent Of(device::Event& event) {
  return static_cast<CudaEvent&>(event).get();
}
CuPointer At(const void* memory) {
  return static_cast<CuPointer>(reinterpret_cast<uintptr_t>(memory));
}

class CudaDevice : public device::Device {
 public:
  CudaDevice(std::shared_ptr<Context> context, const CudaOptions& options,
             bool blocking, bool graphs)
      : context_(std::move(context)),
        cuda_(context_->driver()),
        staging_(context_),
        workshop_(context_, options.blas, options.dnn, options.sparse,
                  {options.tuned, options.measures, options.warms,
                   options.tuning_time},
                  options.attention),
        ranges_(options.nvtx),
        blocking_(blocking),
        graphs_(graphs) {}

  std::string Name() const override { return "cuda"; }
  absl::Status CheckTarget(const std::string& target,
                           const std::string& features) const override {
    return cuda::CheckTarget(context_->machine(), target, features);
  }
  bool SharesHostMemory() const override { return false; }
  bool KeepsContent() const override { return true; }

  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Free(void* memory, int64_t bytes) override;
  // Pinned memory has the same address for the host and all GPUs.
  absl::StatusOr<void*> AllocateHost(int64_t bytes) override;
  void FreeHost(void* memory, int64_t bytes) override;
  // The driver frees whole allocations only.
  void Release(void* memory, int64_t bytes) override {}
  device::MemoryReport Memory() const override {
    return {allocated_, 0, workshop_.scratch().bytes()};
  }

  absl::StatusOr<std::unique_ptr<device::Stream>> CreateStream() override;
  absl::StatusOr<std::unique_ptr<device::Event>> CreateEvent() override;
  absl::Status Record(device::Stream& stream, device::Event& event) override;
  absl::Status Wait(device::Stream& stream, device::Event& event) override;
  absl::Status Synchronize(device::Stream& stream) override;
  absl::Status Synchronize(device::Event& event) override;

  absl::Status CopyToDevice(device::Stream& stream, void* target,
                            const void* host, int64_t bytes) override;
  absl::Status CopyToHost(device::Stream& stream, void* host,
                          const void* source, int64_t bytes) override;
  absl::Status Copy(device::Stream& stream, void* target, const void* source,
                    int64_t bytes) override;

  absl::StatusOr<std::unique_ptr<device::Module>> LoadModule(
      std::string_view code) override;
  absl::Status ReserveLaunchScratch(int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<device::TensorMaps>> PrepareMaps(
      std::vector<device::TensorMapDesc> maps, void* const* buffers) override {
    return CudaTensorMaps::Make(context_, std::move(maps), buffers);
  }
  absl::Status Launch(device::Stream& stream, const device::Kernel& kernel,
                      const device::LaunchShape& shape, void* const* buffers,
                      int count) override;
  absl::Status LaunchEach(device::Stream& stream, const device::Kernel& kernel,
                          const device::LaunchShape& shape,
                          const device::LaunchPieces& pieces,
                          void* const* buffers, int count) override;

  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareGemm(
      const device::GemmDesc& desc,
      const std::vector<const void*>& constants) override {
    return workshop_.PrepareGemm(desc, constants);
  }
  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareConv(
      const device::ConvDesc& desc,
      const std::vector<const void*>& constants) override {
    return workshop_.PrepareConv(desc);
  }
  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareAttention(
      const device::AttentionDesc& desc, const device::Kernel& kernel,
      const device::LaunchShape& shape,
      const std::vector<int64_t>& operand_bytes) override {
    return workshop_.PrepareAttention(
        desc, {static_cast<const CudaKernel&>(kernel), shape, operand_bytes});
  }
  absl::Status Execute(device::Stream& stream, device::LibraryOp& op,
                       void* const* buffers, int count) override;
  std::vector<std::string> Warnings() const override {
    return workshop_.Warnings();
  }

  absl::StatusOr<std::unique_ptr<device::Graph>> Capture(
      device::Stream& stream,
      const std::function<absl::Status()>& work) override;
  absl::Status Replay(device::Stream& stream, device::Graph& graph) override;
  void BeginRange(const char* name) override { ranges_.Begin(name); }
  void EndRange() override { ranges_.End(); }

 private:
  // Called after putting work on a stream: waits for it if `blocking_`.
  absl::Status Done(CuStream stream, absl::Status status) const {
    if (!blocking_ || !status.ok()) return status;
    return context_->Check(cuda_.SynchronizeStream(stream),
                           "waiting for this operation");
  }

  const std::shared_ptr<Context> context_;
  const Driver& cuda_;
  Staging staging_;
  Workshop workshop_;
  const Ranges ranges_;
  const bool blocking_, graphs_;
  int64_t allocated_ = 0;
};

absl::StatusOr<void*> CudaDevice::Allocate(int64_t bytes) {
  if (bytes < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot allocate ", bytes, " bytes"));
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  CuPointer memory = 0;
  const CuResult result =
      cuda_.Allocate(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  if (result != kCuSuccess) {
    size_t available = 0, total = 0;
    cuda_.MemoryInfo(&available, &total);
    return context_->Check(
        result, absl::StrCat("allocating ", bytes, " bytes on a GPU with ",
                             available, " of ", total, " bytes free"));
  }
  allocated_ += bytes;
  return reinterpret_cast<void*>(memory);
}

void CudaDevice::Free(void* memory, int64_t bytes) {
  if (context_->Enter().ok()) cuda_.Free(At(memory));
  allocated_ -= bytes;
}

absl::StatusOr<void*> CudaDevice::AllocateHost(int64_t bytes) {
  if (bytes < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot allocate ", bytes, " bytes"));
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  void* memory = nullptr;
  PARTITA_RETURN_IF_ERROR(context_->Check(
      cuda_.AllocateHost(&memory,
                         static_cast<size_t>(std::max<int64_t>(bytes, 1))),
      absl::StrCat("allocating ", bytes, " bytes of pinned host memory")));
  return memory;
}

void CudaDevice::FreeHost(void* memory, int64_t bytes) {
  if (context_->Enter().ok()) cuda_.FreeHost(memory);
}

absl::StatusOr<std::unique_ptr<device::Stream>> CudaDevice::CreateStream() {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  CuStream stream = nullptr;
  PARTITA_RETURN_IF_ERROR(context_->Check(
      cuda_.CreateStream(&stream, kCuStreamNonBlocking), "making a stream"));
  return std::make_unique<CudaStream>(context_, stream);
}

absl::StatusOr<std::unique_ptr<device::Event>> CudaDevice::CreateEvent() {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  CuEvent event = nullptr;
  PARTITA_RETURN_IF_ERROR(context_->Check(
      cuda_.CreateEvent(&event, kCuEventNoTiming), "making an event"));
  return std::make_unique<CudaEvent>(context_, event);
}

absl::Status CudaDevice::Record(device::Stream& stream, device::Event& event) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return context_->Check(cuda_.RecordEvent(Of(event), Of(stream)),
                         "recording an event");
}

absl::Status CudaDevice::Wait(device::Stream& stream, device::Event& event) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return context_->Check(cuda_.WaitEvent(Of(stream), Of(event), 0),
                         "waiting for an event");
}

absl::Status CudaDevice::Synchronize(device::Stream& stream) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return context_->Check(cuda_.SynchronizeStream(Of(stream)),
                         "waiting for the GPU");
}

absl::Status CudaDevice::Synchronize(device::Event& event) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return context_->Check(cuda_.SynchronizeEvent(Of(event)),
                         "waiting for an event");
}

absl::Status CudaDevice::CopyToDevice(device::Stream& stream, void* target,
                                      const void* host, int64_t bytes) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return Done(Of(stream), staging_.ToDevice(Of(stream), target, host, bytes));
}

absl::Status CudaDevice::CopyToHost(device::Stream& stream, void* host,
                                    const void* source, int64_t bytes) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return staging_.ToHost(Of(stream), host, source, bytes);
}

absl::Status CudaDevice::Copy(device::Stream& stream, void* target,
                              const void* source, int64_t bytes) {
  if (bytes == 0 || target == source) return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return Done(Of(stream), context_->Check(cuda_.Copy(At(target), At(source),
                                                     static_cast<size_t>(bytes),
                                                     Of(stream)),
                                          "copying on the GPU"));
}

absl::StatusOr<std::unique_ptr<device::Module>> CudaDevice::LoadModule(
    std::string_view code) {
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<CudaModule> module,
                           CudaModule::Load(context_, code));
  return std::unique_ptr<device::Module>(std::move(module));
}

absl::Status CudaDevice::ReserveLaunchScratch(int64_t bytes) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return workshop_.scratch().Reserve(bytes);
}

absl::Status CudaDevice::Launch(device::Stream& stream,
                                const device::Kernel& kernel,
                                const device::LaunchShape& shape,
                                void* const* buffers, int count) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  const CudaKernel& cuda_kernel = static_cast<const CudaKernel&>(kernel);
  const auto launch = [&](void* scratch) {
    return cuda_kernel.Launch(Of(stream), shape, buffers, count, scratch);
  };
  return Done(Of(stream), shape.scratch_bytes == 0
                              ? launch(nullptr)
                              : workshop_.WithScratch(
                                    Of(stream), shape.scratch_bytes, launch));
}

absl::Status CudaDevice::LaunchEach(device::Stream& stream,
                                    const device::Kernel& kernel,
                                    const device::LaunchShape& shape,
                                    const device::LaunchPieces& pieces,
                                    void* const* buffers, int count) {
  const auto number = static_cast<int64_t>(pieces.ranges.size());
  if (number == 0 || number > program::PiecesOfTable(count / number))
    return absl::InvalidArgumentError(absl::StrCat(
        "expected at most as many pieces of a launch as fit ",
        program::kPieceTableBytes, " bytes of parameters, found ", number,
        " with ", count, " buffers; compile the model again"));
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return Done(Of(stream), static_cast<const CudaKernel&>(kernel).LaunchTable(
                              Of(stream), shape,
                              program::PieceTable(pieces.ranges, pieces.outputs,
                                                  buffers, count)));
}

absl::Status CudaDevice::Execute(device::Stream& stream, device::LibraryOp& op,
                                 void* const* buffers, int count) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return Done(Of(stream), workshop_.Execute(static_cast<CudaOp&>(op),
                                            Of(stream), buffers, count));
}

absl::StatusOr<std::unique_ptr<device::Graph>> CudaDevice::Capture(
    device::Stream& stream, const std::function<absl::Status()>& work) {
  if (!graphs_) return std::unique_ptr<device::Graph>();
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  PARTITA_RETURN_IF_ERROR(workshop_.BeginCapture(Of(stream)));
  absl::StatusOr<std::unique_ptr<CudaGraph>> graph = CudaGraph::Capture(
      context_, Of(stream), workshop_.scratch().Hold(), work);
  workshop_.EndCapture();
  if (!graph.ok()) return graph.status();
  return std::unique_ptr<device::Graph>(*std::move(graph));
}

absl::Status CudaDevice::Replay(device::Stream& stream, device::Graph& graph) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  PARTITA_RETURN_IF_ERROR(workshop_.HandOver(Of(stream)));
  PARTITA_RETURN_IF_ERROR(static_cast<CudaGraph&>(graph).Launch(Of(stream)));
  return workshop_.Mark(Of(stream));
}

// True if the environment variable has this value.
bool EnvironmentIs(const char* name, const std::string& value) {
  const char* const found = std::getenv(name);
  return found != nullptr && found == value;
}

// Changes the choice as the environment says.
absl::Status ChooseAttention(AttentionBy& attention) {
  constexpr char kName[] = "PARTITA_CUDA_ATTENTION";
  const char* const found = std::getenv(kName);
  if (found == nullptr) return absl::OkStatus();
  if (EnvironmentIs(kName, "launch")) {
    attention = AttentionBy::kLaunch;
  } else if (EnvironmentIs(kName, "cudnn")) {
    attention = AttentionBy::kDnn;
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        kName, ": expected 'launch' or 'cudnn', found '", found, "'"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<device::Device>> MakeCudaDevice(
    const CudaOptions& given) {
  CudaOptions options = given;
  if (EnvironmentIs("PARTITA_CUDA_SPARSE", "0")) options.sparse = "none";
  PARTITA_RETURN_IF_ERROR(ChooseAttention(options.attention));
  PARTITA_ASSIGN_OR_RETURN(std::shared_ptr<const Driver> driver,
                           Driver::Open(options.driver));
  PARTITA_ASSIGN_OR_RETURN(std::shared_ptr<Context> context,
                           Context::Open(std::move(driver), options.ordinal));
  const bool blocking = EnvironmentIs("CUDA_LAUNCH_BLOCKING", "1");
  return std::unique_ptr<device::Device>(std::make_unique<CudaDevice>(
      std::move(context), options, blocking,
      !blocking && !EnvironmentIs("PARTITA_CUDA_GRAPHS", "0")));
}

}  // namespace partita::cuda
