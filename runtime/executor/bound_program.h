// A function of a program with everything resolved: calls are flattened,
// operands are pointers, library operations are prepared. Running it is a walk
// over one array.
#ifndef PARTITA_RUNTIME_EXECUTOR_BOUND_PROGRAM_H_
#define PARTITA_RUNTIME_EXECUTOR_BOUND_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"
#include "runtime/comm/started.h"
#include "runtime/device/device.h"
#include "runtime/executor/arrivals.h"
#include "runtime/executor/collective_desc.h"
#include "runtime/executor/device_exchange.h"
#include "runtime/executor/host_exchange.h"
#include "runtime/executor/nan_trace.h"
#include "runtime/executor/profile.h"
#include "runtime/program/artifact.h"
#include "runtime/program/mesh.h"

namespace partita::executor {

// What an argument of the bound function stands for.
struct Slot {
  char* data = nullptr;
  int port = -1;  // not negative: a port of the caller's, whose memory SetPort
                  // gives later
  int global = -1;  // not negative: a global that no step writes, so libraries
                    // may keep copies of it; what steps update stays -1
};

class BoundProgram {
 public:
  struct Context {
    const program::Artifact& artifact;
    device::Device& device;
    device::Module* module;  // null where the program has no kernels
    const program::MeshPlace& place;
    // Null: collectives are not executed (on devices that keep no content).
    comm::Communicator* communicator;
    // Null: what devices with memory of their own exchange goes through the
    // host's.
    comm::DeviceCommunicator* device_communicator;
    // Called when the last step that could read a global has kept a copy of it.
    std::function<void(int global)> release;
  };

  // `data` is the artifact's data section in device memory, `frame` the memory
  // of the function's frame. The device, the module, the place, the
  // communicator, the frame and the slots' memory must outlive the result.
  static absl::StatusOr<std::unique_ptr<BoundProgram>> Bind(
      const Context& context, int function, const std::vector<Slot>& arguments,
      char* frame, char* data);

  // Which memory a port stands for from now on.
  void SetPort(int port, char* data);

  // One pass over the steps; it ends early if another rank fails. Where the
  // device has graphs and the host takes no part in a step, the second pass is
  // captured, by all ranks or by none, and all later ones replay it, until a
  // port gets other memory. What others send is waited for where it is used
  // (arrivals.h), but with a trace. With a profile every step is synchronised
  // and timed; with a trace, on devices that share the host's memory, its
  // outputs are looked at. All ranks give a profile or a trace, or none.
  // `meanwhile` is called when all is on the stream, before the host waits for
  // it.
  using Meanwhile = std::function<absl::Status()>;
  absl::Status Run(device::Stream& stream, Profile* profile,
                   NanTrace* trace = nullptr,
                   const Meanwhile& meanwhile = nullptr);

  // On the device, of what is being sent.
  int64_t SlotBytes() const;

  int64_t step_count() const { return static_cast<int64_t>(steps_.size()); }
  // One label per step, for Profile.
  std::vector<StepLabel> Labels() const;
  // For people: "'attn.c_proj' (product) in block_forward called by 'h.0'".
  std::string DescribeStep(int64_t step) const;

 private:
  struct Step {
    program::Operation kind;
    int32_t count;  // operands
    size_t first;   // of its operands in buffers_
    const device::Kernel* kernel = nullptr;
    device::LibraryOp* library_op = nullptr;
    comm::Collective* collective = nullptr;
    bool on_device = false;  // the collective is of the device_communicator
    int64_t started = 0;  // positive: this or, of an await, what it waits for
                          // is the run's collective of that number to be
                          // started
    device::LaunchShape shape;
    const device::LaunchPieces* pieces = nullptr;  // of a launch with several
    int64_t bytes = 0;                             // of a copy
    char* slot = nullptr;  // of a send among devices: where it is copied to
    const program::Instruction* instruction;
    int path = 0;  // into paths_
  };
  using Tokens = std::map<int, int64_t>;  // by token, Step::started
  struct Relocation {
    size_t buffer;  // index into buffers_
    int port;
  };
  // What binding needs to know of the globals before it prepares the first
  // library operation.
  struct GlobalUse {
    int library_uses = 0;  // as weights of library operations not prepared yet
    bool kept_elsewhere = true;
  };

  explicit BoundProgram(const Context& context) : context_(context) {}
  absl::Status Flatten(int function, const std::vector<Slot>& arguments,
                       char* frame, const std::string& path);
  Slot Resolve(const program::Buffer& buffer,
               const std::vector<Slot>& arguments, char* frame) const;
  absl::Status ResolveKernel(Step& step);
  absl::Status PrepareLibraryOps();
  absl::Status PrepareCollective(Step& step);
  absl::Status PrepareTransfers();
  void UseCollective(Step& step, comm::Collective& collective);
  // Null where devices have none such.
  absl::StatusOr<std::unique_ptr<comm::Collective>> PrepareOnDevice(
      const TransferDesc& desc, bool started);
  // Waits for the device, if it may wait for other ranks.
  absl::Status AwaitDevices(device::Stream& stream);
  bool HostExchanges() const;
  void Number(Step& step, Tokens& tokens);
  absl::Status RunSteps(device::Stream& stream, Profile* profile,
                        NanTrace* trace, const Meanwhile& meanwhile);
  absl::Status EnqueueSteps(device::Stream& stream, Profile* profile,
                            NanTrace* trace);
  absl::Status RunGraph(device::Stream& stream, const Meanwhile& meanwhile);
  absl::Status Capture(device::Stream& stream);
  // Whether all ranks say yes; all call it.
  absl::StatusOr<bool> AllSay(bool own, const std::string& what);
  absl::Status BeforeExchange() const {
    return before_exchange_ ? before_exchange_() : absl::OkStatus();
  }
  absl::Status EndRun(device::Stream& stream, const Meanwhile& meanwhile);
  absl::Status PrepareStep(Step& step);
  // Whether receives are awaited only where they are needed.
  bool ReceivesAhead() const {
    return context_.communicator == nullptr ||
           context_.device.SharesHostMemory() || slots_ > 0;
  }
  absl::Status PlanEvents();
  absl::Status MakeSlots();
  absl::Status RunStep(device::Stream& stream, const Step& step);
  absl::Status MeetTransfers(device::Stream& stream, int64_t step,
                             Profile* profile);
  absl::Status BeginTransfer(device::Stream& stream, const Step& step,
                             int64_t index);
  absl::Status EndTransfer(device::Stream& stream, const Step& step,
                           int64_t index);
  absl::Status Failed(const Step& step, const absl::Status& status) const;
  absl::Status Exchange(device::Stream& stream, const Step& step,
                        const void* input, void* output);
  absl::Status Start(device::Stream& stream, const Step& step,
                     void* const* buffers);
  absl::Status AwaitStarted(device::Stream& stream, const Step& step);

  Context context_;
  char* data_ = nullptr;
  std::vector<Step> steps_;
  std::vector<std::string> paths_;  // of calls, outermost first
  std::vector<void*> buffers_;
  std::vector<int>
      buffer_globals_;  // parallel to buffers_: the global behind it or -1
  std::vector<Relocation> relocations_;
  // Of transfers where they happen elsewhere than where they stand, and how
  // many of them a run has come by.
  std::vector<TransferEvent> events_;
  size_t met_ = 0;
  int64_t slots_ = 0;  // of transfers among devices; none: there are no such
  std::map<int, device::Allocation> slot_memory_;  // by receiver
  // kNever also where an attempt to capture, or a run, failed.
  enum class Graphs { kFirstRun, kCapture, kReplay, kNever };
  Graphs graphs_ = Graphs::kFirstRun;
  // While a step is captured: called before devices exchange.
  std::function<absl::Status()> before_exchange_;
  std::vector<std::unique_ptr<device::LaunchPieces>> pieces_;
  std::vector<std::unique_ptr<device::TensorMaps>> maps_;
  std::map<std::string, std::unique_ptr<device::LibraryOp>> library_ops_;
  std::map<const program::Instruction*, std::unique_ptr<comm::Collective>>
      collectives_;
  std::set<const comm::Collective*> on_device_;  // of collectives_
  std::unique_ptr<device::Graph> graph_;         // of the two above
  std::set<int64_t> started_on_device_;          // Step::started
  int64_t starts_ = 0;          // collectives that a run starts
  int64_t started_before_ = 0;  // by earlier runs
  std::unique_ptr<comm::StartedOperations> started_;  // if a run starts any
  std::unique_ptr<DeviceExchange> device_exchange_;   // among devices
  HostExchange host_exchange_;  // of devices with memory of their own
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_BOUND_PROGRAM_H_
