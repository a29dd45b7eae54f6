// Optimizer states in a file: read into buffers ahead of the work that uses
// them, and written back behind it.
#ifndef PARTITA_RUNTIME_EXECUTOR_STATE_STORE_H_
#define PARTITA_RUNTIME_EXECUTOR_STATE_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/executor/state_file.h"
#include "runtime/program/state_windows.h"

namespace partita::executor {

struct StateStoreOptions {
  std::string folder;  // must exist; empty: states stay in memory
  // Upper bound on the buffers' bytes; 0: three times the largest unit of work,
  // or 3 MiB if that is more (program::PlanStateWindows).
  int64_t buffer_bytes = 0;
};

// Used by one thread. Errors of earlier writes are returned by later calls.
class StateStore {
 public:
  // `bytes` has the sizes of the states by their index in the program's
  // parameters. The file is `options.folder`/`name`.
  static absl::StatusOr<std::unique_ptr<StateStore>> Create(
      const StateStoreOptions& options, const std::string& name,
      const std::map<size_t, int64_t>& bytes);

  bool Has(size_t parameter) const { return extents_.count(parameter) > 0; }
  // Between runs, and before Plan: copies a state from or to host memory.
  absl::Status Read(size_t parameter, void* host);
  absl::Status Write(size_t parameter, const void* host);

  // Sets the work of a run: the states that each unit of it uses. Allocates the
  // buffers. Called once. FailedPrecondition if the buffers need more than
  // buffer_bytes.
  absl::Status Plan(const std::vector<std::vector<int>>& units,
                    device::Device& device);
  int WindowOf(size_t unit) const { return plan_.window_of_unit[unit]; }
  // The place of a state of the window, the same in every run.
  char* AddressOf(int window, int parameter) const;

  // A run enters all windows in order. BeginRun starts to read the first ones.
  // Enter waits until the window's states are in its buffer. Leave writes them
  // back, once no work uses the buffer any more, and reads the next window for
  // which there is room.
  void BeginRun();
  absl::Status Enter(int window);
  void Leave(int window);
  int windows() const { return static_cast<int>(plan_.windows.size()); }

  int64_t BufferBytes() const;
  int64_t FileBytes() const { return file_bytes_; }

 private:
  struct Extent {
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  StateStore() = default;
  // Transfers between host memory and the file go through an aligned buffer.
  absl::Status Move(size_t parameter, char* to, const char* from);
  std::vector<base::FileTransfer> TransfersOf(int window) const;
  bool Share(int a, int b) const;  // two windows have a state in common
  void ReadAhead();

  StateStoreOptions options_;
  std::map<size_t, Extent> extents_;
  int64_t file_bytes_ = 0;
  program::StatePlan plan_;
  std::vector<device::Allocation> buffers_;
  std::unique_ptr<StateFile> file_;  // destroyed before the buffers
  std::vector<int64_t> reads_;       // the batch of each window in this run
  int next_read_ = 0;                // the first window that is not being read
  int left_ = 0;  // windows of this run that were written back
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_STATE_STORE_H_
