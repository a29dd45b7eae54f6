// A file that appears whole or not at all.
#ifndef PARTITA_RUNTIME_BASE_ATOMIC_FILE_H_
#define PARTITA_RUNTIME_BASE_ATOMIC_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace partita::base {

// Writes go to a temporary file beside `path`; Commit syncs it and renames it
// into place. Without a successful Commit, and after any error, the temporary
// file is removed and `path` is as it was. Errors name the path, the bytes and
// the cause.
class AtomicFile {
 public:
  // NotFound if the folder of `path` does not exist.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(
      const std::string& path);

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  absl::Status Append(std::string_view bytes);
  // Overwrites bytes already appended (a header, say).
  absl::Status WriteAt(int64_t offset, std::string_view bytes);
  // Bytes appended so far.
  int64_t size() const { return size_; }
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, int descriptor);
  absl::Status Write(int64_t offset, std::string_view bytes);
  absl::Status Fail(const std::string& what, int error);
  void Discard();

  std::string path_;
  std::string temporary_;
  int descriptor_;
  int64_t size_ = 0;
};

// Writes a whole file at once.
absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view bytes);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_ATOMIC_FILE_H_
