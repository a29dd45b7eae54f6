// One rank of a divided model, seen from whole tensors.
#ifndef PARTITA_RUNTIME_EXECUTOR_RANK_EXECUTOR_H_
#define PARTITA_RUNTIME_EXECUTOR_RANK_EXECUTOR_H_

#include <memory>
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

  // One step. Takes this rank's blocks out of whole inputs. Of each output,
  // writes the block that this rank is the first to hold into the whole tensor,
  // unless that has no data; padding is dropped. Ranks may be given the same
  // memory.
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs);

  // Collective over all ranks, after a Run whose outputs had data on rank 0
  // only: completes them there.
  absl::Status Gather(comm::Communicator& communicator,
                      const std::vector<MutableTensor>& outputs);

 private:
  struct FreeMemory {
    void operator()(char* memory) const { std::free(memory); }
  };
  struct Port {
    const program::Port* description;
    TensorSpec local;
    TensorSpec global;
    BlockMap block;
    bool first_copy;  // no lower rank holds the same block
    std::unique_ptr<char, FreeMemory> memory;  // the block, where it is copied
  };

  explicit RankExecutor(std::unique_ptr<Executor> executor)
      : executor_(std::move(executor)) {}
  Port MakePort(const program::Port& description) const;
  static absl::Status CheckTensors(const char* what,
                                   const std::vector<Port>& ports,
                                   const std::vector<ConstTensor>& tensors);
  static absl::StatusOr<char*> MemoryOf(Port& port);
  absl::Status GatherPort(comm::Communicator& communicator, Port& port,
                          void* target);

  std::unique_ptr<Executor> executor_;
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_RANK_EXECUTOR_H_
