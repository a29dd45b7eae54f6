// One rank of a program: a device, its communicators, and the program's blocks
// on it. Takes and gives whole tensors.
#ifndef PARTITA_RUNTIME_EXECUTOR_RANK_H_
#define PARTITA_RUNTIME_EXECUTOR_RANK_H_

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"
#include "runtime/device/device.h"
#include "runtime/executor/block_map.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/tensor.h"
#include "runtime/program/artifact.h"

namespace partita::executor {

// The model's inputs and outputs with global shapes.
std::vector<TensorSpec> GlobalInputs(const program::Program& program);
std::vector<TensorSpec> GlobalOutputs(const program::Program& program);

// How ranks are loaded; the same for all ranks of a process.
struct RankOptions {
  // Makes device number `index` of this machine; called on the rank's thread.
  std::function<absl::StatusOr<std::unique_ptr<device::Device>>(int index)>
      make_device;
  // Makes that device's communicator for device memory, in addition to `base`;
  // called by all ranks, on their threads. Unset, or null on all ranks:
  // collectives go through host memory.
  std::function<absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>(
      int index, comm::Communicator& base)>
      make_communicator;
  std::string weights_dir;  // as in LoadOptions
  // The executor on that device whose states are used (LoadOptions). Unset: own
  // states.
  std::function<const Executor*(int index)> states_of;
  std::chrono::milliseconds loop_limit{60000};  // as in LoadOptions
  StateStoreOptions state_store;                // as in LoadOptions
};

// Used by one thread at a time.
class Rank {
 public:
  // Loads the rank that `communicator` names, on device number `index`. Null: a
  // program for one device, or any rank on a device that executes nothing. The
  // communicator must outlive the rank.
  static absl::StatusOr<std::unique_ptr<Rank>> Load(
      std::shared_ptr<const program::Artifact> artifact,
      const RankOptions& options, int index, comm::Communicator* communicator);

  // The program's blocks on this rank's device.
  Executor& executor() { return *executor_; }
  const Executor& executor() const { return *executor_; }
  // Device::Warnings, e.g. about a library that is missing.
  std::vector<std::string> Warnings() const { return device_->Warnings(); }
  // True if devices exchange tensors among themselves.
  bool ExchangesOnDevices() const { return device_communicator_ != nullptr; }

  // Runs one step. Reads this rank's blocks from the whole inputs; inputs of
  // which it has no block need no data. Writes each output block for which this
  // rank is the first holder to the whole tensor, unless that has no data;
  // drops padding. Several ranks may be given the same memory.
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs);

  // Executor::Prefetch with whole inputs. Tensors without data are not
  // prefetched. The memory must not change until the run that uses it is done.
  absl::Status Prefetch(std::vector<ConstTensor> inputs);

  // This rank's part in reading a whole parameter between runs: if it is the
  // first holder of its block, it writes the block to the whole tensor, unless
  // that has no data. Several ranks may be given the same memory.
  absl::Status ReadParameter(const std::string& name,
                             const MutableTensor& whole);
  // Sets this rank's block, if it has one, from the whole tensor; all ranks
  // call it. FailedPrecondition for parameters that are not updated.
  absl::Status WriteParameter(const std::string& name,
                              const ConstTensor& whole);

  // Collective over all ranks, after a Run whose outputs had data on rank 0
  // only: completes all outputs there, or only outputs of one element.
  enum class Which { kAll, kNumbers };
  absl::Status Gather(comm::Communicator& communicator,
                      const std::vector<MutableTensor>& outputs,
                      Which which = Which::kAll);

 private:
  struct FreeMemory {
    void operator()(char* memory) const { std::free(memory); }
  };
  using AlignedMemory = std::unique_ptr<char, FreeMemory>;
  // A tensor whose blocks are held by the ranks of some entries.
  struct Block {
    std::string name;
    const program::Shard* shard;
    const program::TensorType* type;
    std::vector<int64_t> first_holders;  // lowest rank holding each block
  };
  // An input or output of the model.
  struct Port {
    Block held;
    TensorSpec local;
    TensorSpec global;
    BlockMap block;
    int index;             // index in the executor; -1: this rank has no block
    bool first_copy;       // this rank is a first holder
    AlignedMemory memory;  // the block, if it is copied
    // Prefetched block of the next run, and the whole tensor that it comes
    // from.
    AlignedMemory next_memory;
    const void* next_whole = nullptr;
  };

  Rank() = default;
  std::vector<Port> MakePorts(program::Held what) const;
  const program::Program& program() const {
    return executor_->artifact().program();
  }
  absl::Status TakeInput(Port& port, const ConstTensor& whole,
                         ConstTensor& local);
  Block BlockOf(const ParameterSpec& parameter) const;
  bool HoldsFirstCopy(const Block& block) const;
  static absl::Status CheckTensors(const char* what,
                                   const std::vector<Port>& ports,
                                   const std::vector<ConstTensor>& tensors);
  // Returns zeroed memory.
  static absl::StatusOr<AlignedMemory> AllocateAligned(const TensorSpec& spec);
  static absl::StatusOr<char*> MemoryOf(Port& port);
  absl::StatusOr<std::vector<ConstTensor>> TakeNext(
      const std::vector<ConstTensor>& inputs);
  // Members of GatherBlock: rank 0, even without a block, then the other first
  // holders. With a single member nothing is gathered.
  static std::vector<int> Members(const Block& block);
  bool IsMember(const Block& block) const;
  // `own` is this rank's block, or null. On rank 0, writes the other ranks'
  // blocks to `target`.
  absl::Status GatherBlock(comm::Communicator& communicator, const Block& block,
                           const char* own, void* target);
  absl::Status GatherPort(comm::Communicator& communicator, Port& port,
                          void* target);

  // In the order of their construction.
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<comm::DeviceCommunicator> device_communicator_;
  std::unique_ptr<Executor> executor_;
  std::vector<ParameterSpec> parameters_;  // of the whole model
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_RANK_H_
