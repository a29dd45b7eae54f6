// A file that grows by whole records, whenever the process may be killed.
#ifndef PARTITA_RUNTIME_TRAIN_APPEND_FILE_H_
#define PARTITA_RUNTIME_TRAIN_APPEND_FILE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace partita::train {

class AppendFile {
 public:
  // Opens or creates; what is there stays. NotFound without a folder for it.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Open(
      const std::string& path);

  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  const std::string& path() const { return path_; }
  // In one call of the system, so that others see all of it or nothing. If the
  // disk is full, what was written of it is taken back.
  absl::Status Append(std::string_view record);

 private:
  AppendFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  const std::string path_;
  const int descriptor_;
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_APPEND_FILE_H_
