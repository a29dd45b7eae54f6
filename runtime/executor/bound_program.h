// A function of a program with everything resolved: calls are flattened,
// operands are pointers, library operations are prepared. Running it is a walk
// over one array.
#ifndef PARTITA_RUNTIME_EXECUTOR_BOUND_PROGRAM_H_
#define PARTITA_RUNTIME_EXECUTOR_BOUND_PROGRAM_H_

#include <chrono>
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
#include "runtime/executor/state_store.h"
#include "runtime/program/artifact.h"
#include "runtime/program/mesh.h"

namespace partita::executor {

// Memory of an argument of the bound function.
struct Slot {
  char* data = nullptr;
  // Not negative: a port, whose memory SetPort provides later.
  int port = -1;
  // Not negative: a global that no step writes, so libraries may keep copies of
  // it. -1 for globals that steps update.
  int global = -1;
  // Not negative: a parameter of the state store, whose memory is a buffer.
  int state = -1;
  // Stored in the program: libraries may keep copies of it, too.
  bool is_constant = false;
};

class BoundProgram {
 public:
  struct Context {
    const program::Artifact& artifact;
    device::Device& device;
    device::Module* module;  // null where the program has no kernels
    const program::MeshPlace& place;
    // Null: collectives are not executed (on devices that do not store
    // tensors).
    comm::Communicator* communicator;
    // Null: devices with memory of their own exchange through host memory.
    comm::DeviceCommunicator* device_communicator;
    // How long one loop may run.
    std::chrono::milliseconds loop_limit;
    // Called once no remaining step reads this global: libraries hold a packed
    // copy.
    std::function<void(int global)> release;
    // Null: all states are in memory. Else it must outlive the program.
    StateStore* states = nullptr;
    // All ranks bind their functions at the same time, and fail together if the
    // buffers of one are too small.
    bool together = false;
  };

  // `data` is the artifact's data section in device memory, `frame` the memory
  // of the function's frame. The device, the module, the place, the
  // communicator, the frame and the slots' memory must outlive the result.
  static absl::StatusOr<std::unique_ptr<BoundProgram>> Bind(
      const Context& context, int function, const std::vector<Slot>& arguments,
      char* frame, char* data);

  // Sets the memory of a port for the following runs.
  void SetPort(int port, char* data);

  // Runs all steps once; ends early if another rank fails.
  // If the device has graphs and the host takes part in no step, the second
  // pass is captured, by all ranks or by none, and later passes replay the
  // graph until a port gets other memory.
  // Receives are awaited where their data is used (arrivals.h); with a trace,
  // where they are issued.
  // With a profile, every step is synchronised and timed. With a trace, on
  // devices that share host memory, the outputs of every step are inspected.
  // Either all ranks pass a profile or trace, or none does.
  // Calls `meanwhile` once all work is on the stream, before the host waits for
  // it.
  using Meanwhile = std::function<absl::Status()>;
  absl::Status Run(device::Stream& stream, Profile* profile,
                   NanTrace* trace = nullptr,
                   const Meanwhile& meanwhile = nullptr);

  // Bytes of device memory for tensors being sent.
  int64_t SlotBytes() const;

  int64_t step_count() const { return static_cast<int64_t>(steps_.size()); }
  // One label per step, for Profile.
  std::vector<StepLabel> Labels() const;
  // For messages, e.g. "'attn.c_proj' (product) in block_forward called by
  // 'h.0'".
  std::string DescribeStep(int64_t step) const;

 private:
  struct Step {
    program::Operation kind;
    int32_t count;  // operands
    size_t first;   // index of its first operand in buffers_
    const device::Kernel* kernel = nullptr;
    device::LibraryOp* library_op = nullptr;
    comm::Collective* collective = nullptr;
    bool on_device = false;  // made by the device_communicator
    // 1-based number, within a run, of the started collective; for an await, of
    // the collective that it waits for; 0: not started.
    int64_t started = 0;
    device::LaunchShape shape;
    const device::LaunchPieces* pieces = nullptr;  // null: a single piece
    int64_t bytes = 0;                             // of a copy
    char* slot = nullptr;  // of a send among devices: its copy
    const program::Instruction* instruction;
    int path = 0;   // into paths_
    int loop = -1;  // into loops_; -1: not a call that repeats
  };
  // A call that repeats. Its step's operands are those of the call; the steps
  // of an iteration follow its own.
  struct Loop {
    // A value from iteration to iteration, in the order of the call's outputs.
    struct Carried {
      char* next;  // the result of an iteration
      int64_t bytes;
    };
    std::vector<Carried> carried;
    int64_t end = 0;  // index of the first step behind the loop
  };
  // A part of a step whose states are in one window of the state store.
  struct StatePart {
    int window = 0;
    // Indices into buffers_ and the pieces, if the part is some pieces of a
    // launch. Empty: the part is the whole step.
    std::vector<size_t> operands;
    device::LaunchPieces pieces;
    device::LaunchShape shape;
  };
  using Tokens = std::map<int, int64_t>;  // token -> Step::started
  struct Relocation {
    size_t buffer;  // index into buffers_
    int port;
  };
  // Uses of a global, counted before the first library operation is prepared.
  struct GlobalUse {
    int library_uses = 0;  // as a weight of library operations not yet prepared
    bool kept_elsewhere = true;
  };

  explicit BoundProgram(const Context& context) : context_(context) {}
  absl::Status Flatten(int function, const std::vector<Slot>& arguments,
                       char* frame, const std::string& path,
                       const std::string& layer);
  // `started` collects the names of started collectives, in order.
  StepLabel LabelOfStep(const Step& step,
                        std::vector<std::string>& started) const;
  // Flattens a call that repeats, as a step and those of an iteration.
  absl::Status FlattenLoop(Step step, std::vector<Slot> operands, char* frame,
                           const std::string& path, const std::string& layer);
  void AddOperands(Step& step, const std::vector<Slot>& operands);
  Slot Resolve(const program::Buffer& buffer,
               const std::vector<Slot>& arguments, char* frame) const;
  absl::Status ResolveKernel(Step& step);
  absl::Status PlanStates();
  absl::Status PlanStatesTogether();
  // The operands of each piece of a launch, or of the whole step.
  std::vector<std::vector<size_t>> OperandsByPiece(const Step& step) const;
  StatePart PartOf(const Step& step, size_t first_piece, size_t end_piece,
                   const std::vector<std::vector<size_t>>& operands) const;
  absl::Status RunParts(device::Stream& stream, const Step& step,
                        const std::vector<StatePart>& parts);
  absl::Status EnterWindow(device::Stream& stream, int window);
  absl::Status LeaveWindow(device::Stream& stream);
  absl::Status PrepareLibraryOps();
  // Lets a library compute an attention if that is faster than its launch.
  absl::Status PrepareAttention(Step& step);
  absl::Status PrepareCollective(Step& step);
  absl::Status PrepareTransfers();
  void UseCollective(Step& step, comm::Collective& collective);
  // Rows among devices run where they start, as the host waits for counts.
  static bool IsStartedOnDevice(const Step& step, comm::Kind kind) {
    return step.started > 0 && !comm::MovesRows(kind);
  }
  // Null if the devices cannot run the operation themselves.
  absl::StatusOr<std::unique_ptr<comm::Collective>> PrepareOnDevice(
      const TransferDesc& desc, bool started);
  // If the device may wait for other ranks, waits for the device.
  absl::Status AwaitDevices(device::Stream& stream);
  bool HostExchanges() const;
  void Number(Step& step, Tokens& tokens);
  absl::Status RunSteps(device::Stream& stream, Profile* profile,
                        NanTrace* trace, const Meanwhile& meanwhile);
  absl::Status EnqueueSteps(device::Stream& stream, Profile* profile,
                            NanTrace* trace);
  // Runs the steps [begin, end), and the iterations of a loop among them.
  absl::Status RunRange(device::Stream& stream, int64_t begin, int64_t end,
                        Profile* profile, NanTrace* trace);
  absl::Status RunPlainStep(device::Stream& stream, const Step& step,
                            Profile* profile, NanTrace* trace);
  absl::Status RunLoop(device::Stream& stream, const Step& step,
                       Profile* profile, NanTrace* trace);
  absl::StatusOr<bool> GoesOn(device::Stream& stream, const void* condition);
  absl::Status RunGraph(device::Stream& stream, const Meanwhile& meanwhile);
  absl::Status Capture(device::Stream& stream);
  // True if all ranks pass true. Collective over all ranks.
  absl::StatusOr<bool> AllRanksAgree(bool own, const std::string& what);
  absl::Status BeforeExchange() const {
    return before_exchange_ ? before_exchange_() : absl::OkStatus();
  }
  absl::Status EndRun(device::Stream& stream, const Meanwhile& meanwhile);
  absl::Status PrepareStep(Step& step);
  // True if the convolution's residual is in the memory of its result, and the
  // device can add to it there.
  bool AddsInPlace(const Step& step, const device::ConvDesc& desc) const;
  // True if receives are awaited only where their data is needed.
  bool ReceivesAhead() const {
    return context_.communicator == nullptr ||
           context_.device.SharesHostMemory() || slots_ > 0;
  }
  absl::Status PlanEvents();
  absl::Status MakeSlots();
  absl::Status RunStep(device::Stream& stream, const Step& step);
  absl::Status RunOperation(device::Stream& stream, const Step& step);
  absl::Status MeetTransfers(device::Stream& stream, int64_t step,
                             Profile* profile);
  absl::Status BeginTransfer(device::Stream& stream, const Step& step,
                             int64_t index);
  absl::Status EndTransfer(device::Stream& stream, const Step& step,
                           int64_t index);
  absl::Status Failed(const Step& step, const absl::Status& status) const;
  absl::Status Exchange(device::Stream& stream, const Step& step,
                        const void* input, void* output);
  // Sends rows or returns them; `buffers` are the input, `to` and the output.
  absl::Status MoveRows(device::Stream& stream, const Step& step,
                        void* const* buffers);
  absl::Status Start(device::Stream& stream, const Step& step,
                     void* const* buffers);
  absl::Status AwaitStarted(device::Stream& stream, const Step& step);

  Context context_;
  char* data_ = nullptr;
  std::vector<Step> steps_;
  std::vector<Loop> loops_;
  std::vector<std::string> paths_;   // of call names, outermost first
  std::vector<std::string> layers_;  // parallel to paths_: the call's layer
  std::vector<void*> buffers_;
  std::vector<int>
      buffer_globals_;  // parallel to buffers_: the global behind it or -1
  std::vector<bool> buffer_constants_;  // parallel to buffers_
  std::vector<int> buffer_states_;      // parallel to buffers_: Slot::state
  std::map<int64_t, std::vector<StatePart>> state_parts_;  // by step
  int window_ = -1;  // of the state store, entered by this run; -1: none
  std::vector<Relocation> relocations_;
  // Transfers that happen before or after their own step, and the number of
  // these events that the current run has handled.
  std::vector<TransferEvent> events_;
  size_t met_ = 0;
  // Per receiver, for transfers among devices; 0: there are none.
  int64_t slots_ = 0;
  std::map<int, device::Allocation> slot_memory_;  // by receiver
  // Also kNever after a run or an attempt to capture has failed.
  enum class Graphs { kFirstRun, kCapture, kReplay, kNever };
  Graphs graphs_ = Graphs::kFirstRun;
  // Set during capture: called before devices exchange.
  std::function<absl::Status()> before_exchange_;
  std::vector<std::unique_ptr<device::LaunchPieces>> pieces_;
  std::vector<std::unique_ptr<device::TensorMaps>> maps_;
  std::map<std::string, std::unique_ptr<device::LibraryOp>> library_ops_;
  std::map<const program::Instruction*, std::unique_ptr<comm::Collective>>
      collectives_;
  std::set<const comm::Collective*> on_device_;  // of collectives_
  std::unique_ptr<device::Graph> graph_;         // replays the operations above
  std::set<int64_t> started_on_device_;          // Step::started
  int64_t starts_ = 0;          // collectives that one run starts
  int64_t started_before_ = 0;  // collectives started by earlier runs
  std::unique_ptr<comm::StartedOperations> started_;  // null: a run starts none
  std::unique_ptr<DeviceExchange> device_exchange_;   // among devices
  HostExchange host_exchange_;  // of devices with memory of their own
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_BOUND_PROGRAM_H_
