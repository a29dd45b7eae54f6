// The folder that a run's checkpoints lie in, and their names.
//
//   step-00000100          a checkpoint: tensors, indexes, state.json
//   step-00000200.partial-RUN   one being written, or what a killed run left
//   step-00000150.damaged  one that was found damaged when a run went on
//   .lock                  held by the run that writes
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

// Steps of which there is a checkpoint, whole or not, in order. None where
// there is no such folder.
absl::StatusOr<std::vector<int64_t>> ListSteps(const std::string& folder);

// Removes what is partial, of steps up to `last_step`, but for that of the run
// `except` where it is not empty.
absl::Status RemovePartial(const std::string& folder, int64_t last_step,
                           const std::string& except);

// Removes all but the newest `keep` >= 1 checkpoints. One that is being removed
// is partial first, so it is never seen without some of its files.
absl::Status KeepNewest(const std::string& folder, int keep,
                        const std::string& run);

// Nobody else holds the lock of a folder as long as this lives; a killed
// process holds none.
class FolderLock {
 public:
  // FailedPrecondition if another process holds it. File systems without locks
  // are let pass.
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
