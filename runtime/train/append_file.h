// A file that grows by complete records, even if the process is killed.
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
  // Opens or creates the file; keeps its content. NotFound if its folder does
  // not exist.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Open(
      const std::string& path);

  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  const std::string& path() const { return path_; }
  // Appends in one system call, so that readers see the whole record or
  // nothing. If the disk is full, removes the partly written record.
  absl::Status Append(std::string_view record);

 private:
  AppendFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  const std::string path_;
  const int descriptor_;
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_APPEND_FILE_H_
