// A temporary folder of a command.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_TEMPORARY_FOLDER_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_TEMPORARY_FOLDER_H_

#include <string>

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

namespace partita::driver {

// Deleted with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    if (llvm::sys::fs::createUniqueDirectory("partita", path_)) path_.clear();
  }
  ~TemporaryFolder() {
    if (!path_.empty()) llvm::sys::fs::remove_directories(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Empty if it could not be made.
  std::string path() const { return path_.str().str(); }

 private:
  llvm::SmallString<128> path_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_TEMPORARY_FOLDER_H_
