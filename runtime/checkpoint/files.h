// Files of a checkpoint on disk, of which several processes may write parts.
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
  // Opens or creates it; its size is `bytes` afterwards.
  static absl::StatusOr<PartFile> Open(const std::string& path, int64_t bytes);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  absl::Status Write(int64_t offset, std::string_view bytes);
  // Returns when what was written is on disk.
  absl::Status Sync();

 private:
  PartFile(std::string path, int descriptor);

  std::string path_;
  int descriptor_;
};

// A whole small file, synced.
absl::Status WriteSmallFile(const std::string& path, std::string_view bytes);

absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

// Size and checksum of a file, read in pieces.
absl::StatusOr<FileRecord> ChecksumFile(const std::string& path);

// Makes names in a folder survive a power cut.
absl::Status SyncFolder(const std::string& path);

// Moves a folder to `path`; what was there, if anything, is at `from` then. At
// every moment one of the two is at `path`, where the file system can exchange
// names.
absl::Status MoveIntoPlace(const std::string& from, const std::string& path);

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_FILES_H_
