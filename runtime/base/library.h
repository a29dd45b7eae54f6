// Shared libraries opened at run time, so that one binary runs on machines with
// and without them.
#ifndef PARTITA_RUNTIME_BASE_LIBRARY_H_
#define PARTITA_RUNTIME_BASE_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace partita::base {

// An open library. It stays open for the life of the process, because drivers
// keep their own threads.
class Library {
 public:
  // Opens the first of `names` that can be loaded. FailedPrecondition if none
  // can; the message starts with `what` and ends with `advice`.
  static absl::StatusOr<Library> Open(const std::vector<std::string>& names,
                                      const std::string& what,
                                      const std::string& advice);

  // True if a library of that name exists, even if it cannot be loaded.
  static bool IsInstalled(const std::string& name);

  // Returns the function, or null if the library has none.
  void* Find(const char* symbol) const;
  // Finds a function. FailedPrecondition, naming it, if the library lacks it:
  // the library is too old.
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

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_LIBRARY_H_
