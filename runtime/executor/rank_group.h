// A loaded program: the ranks of it that this process has, and the connection
// to ranks in other processes.
//
//   Program   program/artifact.h   the compiled file
//   Rank      executor/rank.h      the program on one device
//   RankGroup this file            all ranks in this process, or one of a job
#ifndef PARTITA_RUNTIME_EXECUTOR_RANK_GROUP_H_
#define PARTITA_RUNTIME_EXECUTOR_RANK_GROUP_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/parameters.h"
#include "runtime/executor/profile.h"
#include "runtime/executor/rank.h"
#include "runtime/executor/rank_threads.h"
#include "runtime/executor/tensor.h"
#include "runtime/program/artifact.h"
#include "runtime/program/mesh.h"

namespace partita::executor {

struct GroupOptions : RankOptions {
  int devices = 0;  // expected number; 0: the size of the program's mesh
  comm::CommOptions comm;
  // One rank represents all: for devices that execute nothing, where all ranks
  // run the same entry.
  bool one_rank = false;
};

// Used by one thread at a time.
class RankGroup {
 public:
  // Loads all ranks in this process: a program for one device in the calling
  // thread, otherwise one thread per device. FailedPrecondition if the size of
  // the mesh differs from `devices`.
  static absl::StatusOr<std::unique_ptr<RankGroup>> LoadAll(
      std::shared_ptr<const program::Artifact> artifact,
      const GroupOptions& options);
  // Opens the artifact first.
  static absl::StatusOr<std::unique_ptr<RankGroup>> LoadAll(
      const std::string& path, const GroupOptions& options);
  // Loads one rank of a job, on device number `index` of this machine. `job`
  // has one process per device and must outlive the group. Collective over all
  // processes.
  static absl::StatusOr<std::unique_ptr<RankGroup>> LoadOne(
      std::shared_ptr<const program::Artifact> artifact,
      const RankOptions& options, int index, comm::Communicator& job);
  ~RankGroup();

  const program::Artifact& artifact() const { return *artifact_; }
  const program::Program& program() const { return artifact_->program(); }
  int devices() const { return devices_; }  // of the program's mesh
  // Specs of whole tensors.
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  // Exclusive upper bound for the elements of an input; 0: none.
  int64_t LimitOf(const std::string& input) const;
  int64_t step_count() const;  // of this process's first rank
  // FLOPs of a run's matrix products and convolutions, over all devices.
  double FlopsPerRun() const { return flops_; }

  // Runs one step on this process's ranks, from whole inputs to whole outputs.
  // In a job, outputs are complete after GatherNumbers or Complete. If a rank
  // on a thread fails or stalls, returns an error that names it within the
  // timeout; after a stall, the caller's memory must stay valid, since the rank
  // may wake up.
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs);

  // The executor of rank `index`; null if this process has no such rank.
  const Executor* executor(int index) const;

  // True if prefetching inputs pays; the same in all processes.
  bool LooksAhead() const;
  // Prefetches inputs of the run after the next one; skips tensors without
  // data. The memory must not change until that run is done. Errors are
  // returned by the next run.
  void Prefetch(std::vector<ConstTensor> inputs) { next_ = std::move(inputs); }
  // The error that switched prefetching off on one of this process's ranks,
  // with its number; empty if prefetching works.
  std::string NotAhead() const;

  // Times the lowest rank of each entry that this process has, or all ranks if
  // devices exchange among themselves.
  void EnableProfile();
  // Profiles of the lowest rank of each entry in this process, in the order of
  // the entries; empty before EnableProfile.
  std::vector<Profile*> profiles();

  // Executor::EnableNanTrace for all ranks of this process.
  absl::Status EnableNanTrace();
  // After a run: returns an error that says which step made non-finite numbers,
  // the same in all processes. OK if all outcomes are finite.
  absl::Status CheckFinite();

  // Parameters, accessible between runs.
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  // Reads a whole parameter; FailedPrecondition in a job, where each process
  // has a part. NotFound if there is none of this name; InvalidArgument if the
  // type differs.
  absl::Status ReadParameter(const std::string& name,
                             const MutableTensor& whole);
  // Replaces a whole parameter on all ranks of this process.
  // FailedPrecondition if steps do not update it.
  absl::Status WriteParameter(const std::string& name,
                              const ConstTensor& whole);
  // This process's part of a parameter. A checkpoint gets `runs` from this
  // process, and all other elements from other processes.
  struct Part {
    struct Run {
      // First element in the whole tensor and in the part, and number of
      // elements.
      int64_t whole = 0;
      int64_t part = 0;
      int64_t count = 0;
    };
    std::vector<Run> runs;
    TensorSpec spec;
  };
  Part PartOf(const ParameterSpec& parameter) const;
  absl::Status ReadPart(const Part& part, void* memory);

  // The following functions matter in a job; without one, this process is its
  // only one.
  // True if this process has the outputs and reports; others pass outputs
  // without data.
  bool IsMain() const { return rank() == 0; }
  int rank() const { return job_ == nullptr ? 0 : job_->rank(); }
  int processes() const { return job_ == nullptr ? 1 : job_->size(); }
  // Rows of data inputs that this process reads. Empty, [0, 0), if they cannot
  // be told: then all rows must be present.
  program::Rows InputRows() const;
  // Waits for all processes.
  absl::Status Align();
  // Returns an error of any process in all processes.
  absl::Status Agree(const absl::Status& status);
  // Sets each value to its maximum over all processes.
  absl::Status Max(std::vector<double>& values);
  // Reasons why ranks are much slower than they should be (Device::Warnings),
  // with the ranks unless all are. Complete on the main process.
  absl::StatusOr<std::vector<std::string>> Warnings();
  // Work and memory of every rank of the program, in order.
  absl::StatusOr<std::vector<RankUse>> Uses();
  // Gathers outputs of one element on the main process.
  absl::Status GatherNumbers(const std::vector<MutableTensor>& outputs);
  // Gathers outputs on the main process, and sets each time to that of the
  // slowest process.
  absl::Status Complete(const std::vector<MutableTensor>& outputs,
                        std::vector<double>& times_ms);

 private:
  struct Ranks {
    std::vector<std::unique_ptr<Rank>> list;
  };

  RankGroup(std::shared_ptr<const program::Artifact> artifact, int local_ranks);
  // Calls `work` for each of this process's ranks: in the calling thread, or on
  // each rank's thread.
  absl::Status OnEachRank(std::function<absl::Status(Rank&)> work,
                          int timeout_factor = 1);
  std::vector<Executor*> FirstOfEntries();
  // Reduces each value over all processes of the job.
  absl::Status Combine(comm::Reduction reduction, std::vector<double>& values);
  Rank& first() { return *ranks_->list[0]; }
  const Rank& first() const { return *ranks_->list[0]; }

  const std::shared_ptr<const program::Artifact> artifact_;
  const int devices_;
  const std::vector<TensorSpec> inputs_;
  const std::vector<TensorSpec> outputs_;
  const std::vector<ParameterSpec> parameters_;
  double flops_ = 0;
  std::vector<ConstTensor> next_;      // inputs of the run after the next one
  comm::Communicator* job_ = nullptr;  // null: all ranks are here
  std::map<std::pair<comm::Reduction, size_t>,
           std::unique_ptr<comm::Collective>>
      combined_;  // Combine's collectives, by reduction and length
  // Loaded, and devices exchange among themselves.
  bool leaves_together_ = false;
  std::unique_ptr<RankThreads> threads_;  // null: a single rank
  std::shared_ptr<Ranks> ranks_;  // threads left behind keep these alive
};

// Memory of the rank that holds most.
MemoryUse FullestOf(const std::vector<RankUse>& uses);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_RANK_GROUP_H_
