// Opens libraries by name.
#include "runtime/base/library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace partita::base {

absl::StatusOr<Library> Library::Open(const std::vector<std::string>& names,
                                      const std::string& what,
                                      const std::string& advice) {
  Library library;
  std::string reason;
  for (const std::string& name : names) {
    library.handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle_ != nullptr) {
      library.name_ = name;
      return library;
    }
    const char* error = dlerror();
    if (reason.empty() && error != nullptr) reason = error;
  }
  return absl::FailedPreconditionError(
      absl::StrCat(what, " cannot be loaded: expected ",
                   absl::StrJoin(names, " or "), " (", reason, "); ", advice));
}

// The loader's error names the missing file: this library, or one that it
// needs.
bool Library::IsInstalled(const std::string& name) {
  if (dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return true;
  const char* const error = dlerror();
  return error != nullptr &&
         std::string(error).rfind(name + ": cannot open", 0) != 0;
}

void* Library::Find(const char* symbol) const { return dlsym(handle_, symbol); }

absl::Status Library::Lacks(const char* symbol) const {
  return absl::FailedPreconditionError(
      absl::StrCat(name_, " has no function ", symbol,
                   ": it is older than what this program needs; install a "
                   "newer version"));
}

}  // namespace partita::base
