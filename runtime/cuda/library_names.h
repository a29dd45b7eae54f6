// Names under which NVIDIA's libraries may be found on this machine.
#ifndef PARTITA_RUNTIME_CUDA_LIBRARY_NAMES_H_
#define PARTITA_RUNTIME_CUDA_LIBRARY_NAMES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace partita::cuda {

struct LibrarySearch {
  std::string name;           // "libcublasLt.so"
  std::string pip;            // folder of pip's nvidia packages: "cublas"
  std::vector<int> versions;  // of the soname, newest first
  // True if the library has CUDA's version numbers. A driver for CUDA 12 runs
  // libraries of CUDA 12 and older, so these come first.
  bool follows_cuda = false;
};

// Returns the value of an environment variable, or "".
using Environment = std::function<std::string(const std::string& name)>;
std::string ReadEnvironment(const std::string& name);

// Names to open, in this order: by version; for each, the bare name, which the
// loader looks up in LD_LIBRARY_PATH and the system's folders, then existing
// files in the folders of a CUDA toolkit (CUDA_HOME, /usr/local/cuda), of a
// conda environment, and of pip's nvidia packages for the environment's or the
// system's Python. `driver_version` is cuDriverGetVersion's (12040 for CUDA
// 12.4); 0: unknown.
std::vector<std::string> LibraryNames(
    const LibrarySearch& search, int driver_version,
    const Environment& environment = ReadEnvironment);

// Opens each name with `open` until one succeeds. Else FailedPrecondition, with
// the errors of `what` and the advice.
template <typename Library>
absl::StatusOr<Library> OpenFirst(
    const std::vector<std::string>& names, const std::string& what,
    const std::string& advice,
    absl::StatusOr<Library> (*open)(const std::string& name)) {
  std::vector<std::string> errors;
  for (const std::string& name : names) {
    absl::StatusOr<Library> opened = open(name);
    if (opened.ok()) return opened;
    errors.push_back(std::string(opened.status().message()));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("expected ", what, ", found none that works (",
                   absl::StrJoin(errors, "; "), "); ", advice));
}

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_LIBRARY_NAMES_H_
