// Runs partita-run and reads its output through a file.
#include "compiler/driver/commands/runner.h"

#include <filesystem>

#include "absl/status/status.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

namespace partita::driver {

namespace fs = std::filesystem;

absl::StatusOr<std::string> findRunner() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& candidate :
       {self / "partita-run", self / "../../runtime/tools/partita-run"})
    if (fs::exists(candidate, error)) return candidate.string();
  return absl::NotFoundError("expected the program partita-run beside " +
                             self.string() +
                             "/partita, found none that can be started");
}

absl::StatusOr<std::string> outputOfRunner(
    const std::vector<std::string>& arguments) {
  absl::StatusOr<std::string> program = findRunner();
  if (!program.ok()) return program.status();
  llvm::SmallString<128> path;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("partita-run", "json", path))
    return absl::InternalError("cannot make a temporary file: " +
                               error.message());
  const llvm::FileRemover remover(path);
  llvm::SmallVector<llvm::StringRef> words = {*program};
  words.append(arguments.begin(), arguments.end());
  std::string message;
  const int code = llvm::sys::ExecuteAndWait(
      *program, words, std::nullopt,
      {std::nullopt, llvm::StringRef(path), std::nullopt}, 0, 0, &message);
  if (code != 0)
    return absl::AbortedError(
        *program + " " + arguments.front() + ": expected exit code 0, found " +
        std::to_string(code) + (message.empty() ? "" : ": " + message));
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return absl::InternalError("cannot read what partita-run wrote: " +
                               text.getError().message());
  return (*text)->getBuffer().str();
}

}  // namespace partita::driver
