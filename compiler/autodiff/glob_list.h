// Selects names by patterns.
#ifndef PARTITA_COMPILER_AUTODIFF_GLOB_LIST_H_
#define PARTITA_COMPILER_AUTODIFF_GLOB_LIST_H_

#include <string>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/GlobPattern.h"

namespace partita::autodiff {

// Patterns separated by ';', in the syntax of llvm::GlobPattern: *, ?, [a-z],
// {a,b}. A pattern after '!' excludes the names that it matches. A malformed
// pattern matches nothing.
class GlobList {
 public:
  explicit GlobList(llvm::StringRef text) {
    llvm::SmallVector<llvm::StringRef> parts;
    text.split(parts, ';', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef part : parts) {
      const bool excludes = part.consume_front("!");
      auto pattern = llvm::GlobPattern::create(part, /*MaxSubPatterns=*/1024);
      if (pattern)
        (excludes ? excluded_ : patterns_).push_back(std::move(*pattern));
      else
        llvm::consumeError(pattern.takeError());
    }
  }

  bool matches(llvm::StringRef name) const {
    const auto matches = [&](const auto& pattern) {
      return pattern.match(name);
    };
    return llvm::any_of(patterns_, matches) &&
           llvm::none_of(excluded_, matches);
  }

 private:
  llvm::SmallVector<llvm::GlobPattern> patterns_, excluded_;
};

// Returns the first pattern of a list that matches no name; empty if each
// matches one. Patterns after '!' need not match.
inline std::string firstUnmatched(llvm::StringRef text,
                                  llvm::ArrayRef<llvm::StringRef> names) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ';', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    if (part.starts_with("!")) continue;
    const GlobList glob(part);
    if (llvm::none_of(names,
                      [&](llvm::StringRef name) { return glob.matches(name); }))
      return part.str();
  }
  return "";
}

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_GLOB_LIST_H_
