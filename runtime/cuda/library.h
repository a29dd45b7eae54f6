// Shared libraries that are opened at run time, so that one binary serves
// machines with and without them.
#ifndef PARTITA_RUNTIME_CUDA_LIBRARY_H_
#define PARTITA_RUNTIME_CUDA_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace partita::cuda {

// An open library. It stays open as long as the process runs: drivers keep
// threads of their own.
class Library {
 public:
  // The first of `names` that can be opened. FailedPrecondition if none can:
  // `what` is missing, and `advice` says what to do.
  static absl::StatusOr<Library> Open(const std::vector<std::string>& names,
                                      const std::string& what,
                                      const std::string& advice);

  // Whether there is a library of that name, though perhaps one that cannot be
  // opened.
  static bool IsInstalled(const std::string& name);

  // Null if the library has no such function.
  void* Find(const char* symbol) const;
  // FailedPrecondition, naming the function, if the library lacks it: it is
  // older than what we need.
  template <typename Function>
  absl::Status Load(const char* symbol, Function** function) const {
    *function = reinterpret_cast<Function*>(Find(symbol));
    return *function != nullptr ? absl::OkStatus() : Lacks(symbol);
  }

 private:
  absl::Status Lacks(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_LIBRARY_H_
