// Runs a divided model on the devices of one process, one thread per device.
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
  // Makes a rank's communicator for device memory, in addition to `base`;
  // called by all ranks, on their threads. Unset, or null on all ranks:
  // collectives go through host memory.
  std::function<absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>(
      comm::Communicator& base)>
      make_communicator;
  int devices = 0;  // 0: the size of the program's mesh
  std::string weights_dir;
  bool verify_checksums = true;
  comm::CommOptions comm;
};

// Used by one thread at a time.
class MultiDeviceRunner {
 public:
  // FailedPrecondition if the size of the mesh differs from `devices`.
  static absl::StatusOr<std::unique_ptr<MultiDeviceRunner>> Load(
      const std::string& path, const MultiDeviceOptions& options);
  static absl::StatusOr<std::unique_ptr<MultiDeviceRunner>> Load(
      std::shared_ptr<const program::Artifact> artifact,
      const MultiDeviceOptions& options);
  ~MultiDeviceRunner();

  int devices() const { return devices_; }
  const program::Artifact& artifact() const { return *artifact_; }
  // Global shapes.
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  int64_t step_count() const { return step_count_; }  // of rank 0
  // FLOPs of the matrix products and convolutions of all devices.
  double FlopsPerRun() const;

  // Runs one step on all devices, from whole inputs to whole outputs. If a rank
  // fails or stalls, returns an error that names it within the timeout. After a
  // stall, the caller's memory must stay valid, since the rank may wake up.
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs);

  // Same as in RankExecutor, for all devices. Errors appear in the next Run.
  bool LooksAhead() const { return looks_ahead_; }
  void Prefetch(std::vector<ConstTensor> inputs) { next_ = std::move(inputs); }
  // Error that switched prefetching off, between runs, with the number of the
  // first rank that has one. Empty if prefetching works.
  std::string NotAhead() const;

  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  // Reads a whole parameter between runs. NotFound if there is none of this
  // name; InvalidArgument if the type differs.
  absl::Status ReadParameter(const std::string& name,
                             const MutableTensor& whole);
  // Replaces a whole parameter on all devices. FailedPrecondition if steps do
  // not update it.
  absl::Status WriteParameter(const std::string& name,
                              const ConstTensor& whole);

  // Memory of the rank that holds most.
  MemoryUse Memory() const;
  // Work and memory of every rank, in order.
  std::vector<RankUse> Uses() const;

  // Times the lowest rank of each entry, or all ranks if devices exchange among
  // themselves.
  void EnableProfile();
  // Profiles of the lowest rank of each entry, in the order of the entries.
  std::vector<Profile*> profiles();

  // EnableNanTrace is the same as in Executor. DescribeNonFinite says which
  // step made the last run's non-finite numbers, over all ranks; empty if all
  // are finite.
  absl::Status EnableNanTrace();
  std::string DescribeNonFinite() const;

 private:
  // Parts of a rank, in the order of their construction.
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
  // Loaded, and devices exchange among themselves.
  bool leaves_together_ = false;
  RankThreads threads_;
  std::shared_ptr<Ranks> ranks_;  // threads left behind keep these alive
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_MULTI_DEVICE_H_
