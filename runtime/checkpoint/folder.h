// The folder of a run's checkpoints, and its names.
//
//   step-00000100              a checkpoint: tensors, indexes, state.json
//   step-00000200.partial-RUN  being written, or left by a killed run
//   step-00000150.damaged      found damaged when a run resumed
//   .lock                      held by the run that writes
#ifndef PARTITA_RUNTIME_CHECKPOINT_FOLDER_H_
#define PARTITA_RUNTIME_CHECKPOINT_FOLDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace partita::checkpoint {

std::string StepPath(const std::string& folder, int64_t step);
std::string PartialPath(const std::string& folder, int64_t step,
                        const std::string& run);

// Steps with a checkpoint, complete or not, in order. Empty if the folder does
// not exist.
absl::StatusOr<std::vector<int64_t>> ListSteps(const std::string& folder);

// Removes partial checkpoints of steps up to `last_step`. If `except` is not
// empty, keeps the partial checkpoints of that run.
absl::Status RemovePartial(const std::string& folder, int64_t last_step,
                           const std::string& except);

// Removes all but the newest `keep` >= 1 checkpoints. A checkpoint is renamed
// to a partial one before its removal, so it is never seen incomplete under its
// own name.
absl::Status KeepNewest(const std::string& folder, int keep,
                        const std::string& run);

// Holds the exclusive lock of a folder. A killed process releases it.
class FolderLock {
 public:
  // FailedPrecondition if another process holds the lock. Succeeds on file
  // systems without locks.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);

  FolderLock() = default;
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  int descriptor_ = -1;
};

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_FOLDER_H_
