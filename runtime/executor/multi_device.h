// A divided model on devices of one process, a thread for each.
#ifndef PARTITA_RUNTIME_EXECUTOR_MULTI_DEVICE_H_
#define PARTITA_RUNTIME_EXECUTOR_MULTI_DEVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"
#include "runtime/device/device.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/executor/rank_threads.h"
#include "runtime/executor/tensor.h"
#include "runtime/program/artifact.h"

namespace partita::executor {

struct MultiDeviceOptions {
  // Makes the device of a rank; called on the rank's thread.
  std::function<absl::StatusOr<std::unique_ptr<device::Device>>(int rank)>
      make_device;
  // Makes a rank's end for collectives among the devices' memories, beside
  // `base`; called by all ranks, on their threads. Nothing, or null on all
  // ranks: they go through the host's.
  std::function<absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>(
      comm::Communicator& base)>
      make_communicator;
  int devices = 0;  // 0: as many as the program's mesh has
  std::string weights_dir;
  bool verify_checksums = true;
  comm::CommOptions comm;
};

// Used by one thread at a time.
class MultiDeviceRunner {
 public:
  // FailedPrecondition where the mesh has another size than `devices`.
  static absl::StatusOr<std::unique_ptr<MultiDeviceRunner>> Load(
      const std::string& path, const MultiDeviceOptions& options);
  static absl::StatusOr<std::unique_ptr<MultiDeviceRunner>> Load(
      std::shared_ptr<const program::Artifact> artifact,
      const MultiDeviceOptions& options);
  ~MultiDeviceRunner();

  int devices() const { return devices_; }
  const program::Artifact& artifact() const { return *artifact_; }
  // Whole tensors.
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  int64_t step_count() const { return step_count_; }  // of rank 0
  // Of the matrix products and convolutions of all devices.
  double FlopsPerRun() const;

  // One step on all devices, from whole inputs to whole outputs. If a rank
  // fails or stalls, an error that names it, within the timeout; after a stall
  // the memory given must stay, since the rank may wake up.
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs);

  // Of all devices, as RankExecutor's; an error of it is the next Run's.
  bool LooksAhead() const { return looks_ahead_; }
  void Prefetch(std::vector<ConstTensor> inputs) { next_ = std::move(inputs); }
  // Between runs: of the first rank that has one, with its number.
  std::string NotAhead() const;

  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  // A whole parameter between runs. NotFound, InvalidArgument where the type is
  // another.
  absl::Status ReadParameter(const std::string& name,
                             const MutableTensor& whole);
  // Replaces it on all devices. FailedPrecondition for parameters that are not
  // updated.
  absl::Status WriteParameter(const std::string& name,
                              const ConstTensor& whole);

  // Of the rank that holds most.
  MemoryUse Memory() const;
  // Of all ranks, in order.
  std::vector<RankUse> Uses() const;

  // Times the lowest rank of each entry; all ranks where devices exchange
  // themselves.
  void EnableProfile();
  // Of the lowest rank of each entry, in their order.
  std::vector<Profile*> profiles();

  // As Executor's. Where the numbers of the last run that are not finite came
  // from, over all ranks; empty where all are.
  absl::Status EnableNanTrace();
  std::string DescribeNonFinite() const;

 private:
  // The parts of a rank, in the order in which they are made.
  struct Rank {
    std::unique_ptr<device::Device> device;
    std::unique_ptr<comm::DeviceCommunicator> device_communicator;
    std::unique_ptr<RankExecutor> executor;
  };
  struct Ranks {
    std::vector<Rank> list;
  };
  std::vector<Executor*> FirstOfEntries();

  MultiDeviceRunner(std::shared_ptr<const program::Artifact> artifact,
                    int devices, const comm::CommOptions& options);

  const std::shared_ptr<const program::Artifact> artifact_;
  const int devices_;
  const std::vector<TensorSpec> inputs_;
  const std::vector<TensorSpec> outputs_;
  const std::vector<ParameterSpec> parameters_;
  int64_t step_count_ = 0;
  bool looks_ahead_ = false;
  std::vector<ConstTensor> next_;  // inputs of the run after the next one
  bool leaves_together_ = false;   // loaded, and devices exchange themselves
  RankThreads threads_;
  std::shared_ptr<Ranks> ranks_;  // threads left behind keep them
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_MULTI_DEVICE_H_
