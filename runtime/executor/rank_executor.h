// One rank of a divided model, seen from whole tensors.
#ifndef PARTITA_RUNTIME_EXECUTOR_RANK_EXECUTOR_H_
#define PARTITA_RUNTIME_EXECUTOR_RANK_EXECUTOR_H_

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"
#include "runtime/executor/block_map.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/tensor.h"
#include "runtime/program/artifact.h"

namespace partita::executor {

// The model's inputs and outputs as users see them: global shapes.
std::vector<TensorSpec> GlobalInputs(const program::Program& program);
std::vector<TensorSpec> GlobalOutputs(const program::Program& program);

// Used by one thread at a time; the device and the communicator must outlive
// it.
class RankExecutor {
 public:
  static absl::StatusOr<std::unique_ptr<RankExecutor>> Load(
      std::shared_ptr<const program::Artifact> artifact, device::Device& device,
      const LoadOptions& options);

  Executor& executor() { return *executor_; }

  // One step. Takes this rank's blocks out of whole inputs, of the model's
  // those that it has a block of; the others need no data. Of each output,
  // writes the block that this rank is the first to hold into the whole tensor,
  // unless that has no data; padding is dropped. Ranks may be given the same
  // memory.
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs);

  // As Executor's: whole inputs of the run after the next one, as far as their
  // data is not null. The memory must stay as it is until that run is done.
  bool LooksAhead() const { return executor_->LooksAhead(); }
  absl::Status Prefetch(std::vector<ConstTensor> inputs);

  // This rank's part in reading a whole parameter between runs: the block that
  // it is the first to hold is written into the whole tensor, unless that has
  // no data. Ranks may be given the same memory.
  absl::Status ReadParameter(const std::string& name,
                             const MutableTensor& whole);
  // Takes this rank's block, if it has one, out of the whole tensor; all ranks
  // do.
  // FailedPrecondition for parameters that are not updated.
  absl::Status WriteParameter(const std::string& name,
                              const ConstTensor& whole);
  // Collective over all ranks: the whole parameter on rank 0; data is not
  // looked at on others.
  absl::Status GatherParameter(comm::Communicator& communicator,
                               const std::string& name,
                               const MutableTensor& whole);

  // Collective over all ranks, after a Run whose outputs had data on rank 0
  // only: completes them there. Or just those of one element.
  enum class Which { kAll, kNumbers };
  absl::Status Gather(comm::Communicator& communicator,
                      const std::vector<MutableTensor>& outputs,
                      Which which = Which::kAll);

 private:
  struct FreeMemory {
    void operator()(char* memory) const { std::free(memory); }
  };
  using AlignedMemory = std::unique_ptr<char, FreeMemory>;
  // A tensor of which the ranks of some entries hold blocks.
  struct Block {
    std::string name;
    const program::Shard* shard;
    const program::TensorType* type;
    std::vector<int64_t> first_holders;  // no lower rank holds the same block
  };
  // An input or output of the model.
  struct Port {
    Block held;
    TensorSpec local;
    TensorSpec global;
    BlockMap block;
    int index;        // among the executor's; -1: this rank does not have it
    bool first_copy;  // this rank is one of the first holders
    AlignedMemory memory;  // the block, where it is copied
    // An input's of the next run, and the whole one that it is of.
    AlignedMemory next_memory;
    const void* next_whole = nullptr;
  };

  explicit RankExecutor(std::unique_ptr<Executor> executor);
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
  // Zero at first.
  static absl::StatusOr<AlignedMemory> AllocateAligned(const TensorSpec& spec);
  static absl::StatusOr<char*> MemoryOf(Port& port);
  absl::StatusOr<std::vector<ConstTensor>> TakeNext(
      const std::vector<ConstTensor>& inputs);
  // Rank 0, which may hold none, then the other ranks that are the first to
  // hold a block: whoever takes part in GatherBlock, if they are several.
  static std::vector<int> Members(const Block& block);
  bool IsMember(const Block& block) const;
  // `own` is this rank's block, null where it has none. Writes the others' into
  // `target` on rank 0.
  absl::Status GatherBlock(comm::Communicator& communicator, const Block& block,
                           const char* own, void* target);
  absl::Status GatherPort(comm::Communicator& communicator, Port& port,
                          void* target);

  std::unique_ptr<Executor> executor_;
  const std::vector<ParameterSpec> parameters_;  // of the model
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_RANK_EXECUTOR_H_
