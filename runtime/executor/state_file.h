// A file that holds a device's optimizer states while a model is loaded.
#ifndef PARTITA_RUNTIME_EXECUTOR_STATE_FILE_H_
#define PARTITA_RUNTIME_EXECUTOR_STATE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/file_queue.h"

namespace partita::executor {

// The file has its full size from the start, so that a full disk is an error
// then and not in the middle of a run. Closing removes it; a file that a killed
// process left is used again. Checkpoints, not this file, are for resuming.
class StateFile {
 public:
  // Creates `folder`/`name` with `bytes` bytes and locks it. The folder must
  // exist. NotFound or PermissionDenied for the folder, FailedPrecondition if
  // another process uses the file or removes it again and again,
  // ResourceExhausted if the disk is full; all name the path.
  static absl::StatusOr<std::unique_ptr<StateFile>> Create(
      const std::string& folder, const std::string& name, int64_t bytes);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  const std::string& path() const { return path_; }
  // Offsets, sizes and memory must be multiples of program::kStatePage.
  base::FileQueue& queue() { return *queue_; }
  // DataLoss if another process has changed the file's length. Writes behind
  // the new end would restore the length, with zeros in between.
  absl::Status CheckLength() const;

 private:
  StateFile(int folder, std::string name, std::string path)
      : folder_(folder), name_(std::move(name)), path_(std::move(path)) {}
  absl::Status Open(int64_t bytes);
  // Opens and locks the file. Leaves owned_ false if the locked file no longer
  // has the name.
  absl::Status OpenLocked();

  const int folder_;  // descriptor, so that the name stays in this folder
  const std::string name_, path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
  bool owned_ = false;  // locked by this object
  std::unique_ptr<base::FileQueue> queue_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_STATE_FILE_H_
