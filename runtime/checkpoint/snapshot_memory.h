// Memory of a snapshot: anonymous, or a mapped file without a name.
#ifndef PARTITA_RUNTIME_CHECKPOINT_SNAPSHOT_MEMORY_H_
#define PARTITA_RUNTIME_CHECKPOINT_SNAPSHOT_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace partita::checkpoint {

// Grows, and is reused between snapshots.
class SnapshotMemory {
 public:
  SnapshotMemory() = default;
  SnapshotMemory(const SnapshotMemory&) = delete;
  SnapshotMemory& operator=(const SnapshotMemory&) = delete;
  ~SnapshotMemory() { Free(); }

  // Makes room for `bytes`; drops the content if there was less. A file has its
  // full size at once, so that a full disk is an error here. ResourceExhausted
  // if there is no room.
  absl::Status Reserve(int64_t bytes, const std::string& folder);
  char* data() { return data_; }
  // Takes pages of a file out of this process's memory; they are read again
  // when they are used. Does nothing for anonymous memory.
  void Unload(int64_t offset, int64_t bytes);

 private:
  void Free();

  char* data_ = nullptr;
  int64_t bytes_ = 0;
  bool in_file_ = false;
};

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_SNAPSHOT_MEMORY_H_
