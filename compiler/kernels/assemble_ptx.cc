// Finds ptxas and runs it on files of a temporary folder.
#include "compiler/kernels/assemble_ptx.h"

#include <cstdlib>

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::kernels {
namespace {

std::string readFile(const llvm::Twine& path) {
  auto bytes = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                           /*RequiresNullTerminator=*/false);
  return bytes ? (*bytes)->getBuffer().str() : std::string();
}

// Returns false if the file cannot be written.
bool writeFile(const std::string& path, llvm::StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  file << text;
  file.close();
  const bool failed = file.has_error();
  if (failed)
    file.clear_error();  // or the stream's destructor ends the process
  return !error && !failed;
}

}  // namespace

std::optional<std::string> findPtxas() {
  if (const char* named = std::getenv("PARTITA_PTXAS")) {
    if (llvm::StringRef(named) == "none") return std::nullopt;
    auto found = llvm::sys::findProgramByName(named);
    return found ? *found
                 : std::string(named);  // running it says what is wrong
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH", ""}) {
    const char* folder =
        *variable == '\0' ? "/usr/local/cuda" : std::getenv(variable);
    if (folder == nullptr) continue;
    const std::string path = std::string(folder) + "/bin/ptxas";
    if (llvm::sys::fs::can_execute(path)) return path;
  }
  if (auto found = llvm::sys::findProgramByName("ptxas")) return *found;
  return std::nullopt;
}

AssembledPtx assemblePtx(const std::string& ptxas, llvm::StringRef ptx,
                         llvm::StringRef chip) {
  AssembledPtx result;
  llvm::SmallString<128> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("partita-ptx", folder)) {
    result.report = "expected to make a temporary folder: " + error.message();
    return result;
  }
  auto clean =
      llvm::scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  const std::string input = (folder + "/kernels.ptx").str(),
                    output = (folder + "/kernels.cubin").str(),
                    report = (folder + "/report").str(),
                    arch = ("-arch=" + chip).str();
  if (!writeFile(input, ptx)) {
    result.report = "expected to write " + input +
                    "; is the disk full? TMPDIR may name another folder";
    return result;
  }
  std::string message;
  const int code = llvm::sys::ExecuteAndWait(
      ptxas, {ptxas, "-v", arch, input, "-o", output}, /*Env=*/std::nullopt,
      {std::nullopt, llvm::StringRef(report), llvm::StringRef(report)},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  result.report = readFile(report) + message;
  result.code = readFile(output);
  result.ok = code == 0 && !result.code.empty();
  return result;
}

}  // namespace partita::kernels
