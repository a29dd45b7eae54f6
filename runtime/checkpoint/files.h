// Checkpoint files on disk; several processes may write parts of one file.
#ifndef PARTITA_RUNTIME_CHECKPOINT_FILES_H_
#define PARTITA_RUNTIME_CHECKPOINT_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/manifest.h"

namespace partita::checkpoint {

// A file of a known size, filled in any order. Errors name the file.
class PartFile {
 public:
  // Opens or creates the file and sets its size to `bytes`.
  static absl::StatusOr<PartFile> Open(const std::string& path, int64_t bytes);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  absl::Status Write(int64_t offset, std::string_view bytes);
  // Returns once all written data is on disk.
  absl::Status Sync();

 private:
  PartFile(std::string path, int descriptor);

  std::string path_;
  int descriptor_;
};

// Writes a whole small file and syncs it.
absl::Status WriteSmallFile(const std::string& path, std::string_view bytes);

absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

// Size and checksum of a file, read in pieces.
absl::StatusOr<FileRecord> ChecksumFile(const std::string& path);

// Syncs a folder, so that its names survive a power cut.
absl::Status SyncFolder(const std::string& path);

// Moves a folder to `path`; an existing folder there moves to `from`. If the
// file system can exchange names, one of the two is at `path` at every moment.
absl::Status MoveIntoPlace(const std::string& from, const std::string& path);

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_FILES_H_
