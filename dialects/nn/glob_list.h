// Selects names of tensors by patterns.
#ifndef PARTITA_DIALECTS_NN_GLOB_LIST_H_
#define PARTITA_DIALECTS_NN_GLOB_LIST_H_

#include <string>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/GlobPattern.h"

namespace partita::nn {

// Patterns separated by ';', in the syntax of llvm::GlobPattern: *, ?, [a-z],
// {a,b}. A pattern after '!' excludes the names that it matches. A malformed
// pattern matches nothing.
class GlobList {
 public:
  explicit GlobList(llvm::StringRef text) {
    for (llvm::StringRef part : partsOf(text)) {
      const bool excludes = part.consume_front("!");
      auto pattern = parse(part);
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

  // Returns the first pattern of a list that matches no name; empty if each
  // matches one. Patterns after '!' need not match.
  static std::string firstUnmatched(llvm::StringRef text,
                                    llvm::ArrayRef<llvm::StringRef> names) {
    for (llvm::StringRef part : partsOf(text)) {
      if (part.starts_with("!")) continue;
      const GlobList glob(part);
      if (llvm::none_of(
              names, [&](llvm::StringRef name) { return glob.matches(name); }))
        return part.str();
    }
    return "";
  }

  // Returns the first malformed pattern of a list; empty if there is none.
  static std::string firstMalformed(llvm::StringRef text) {
    for (const llvm::StringRef part : partsOf(text)) {
      llvm::StringRef glob = part;
      glob.consume_front("!");
      if (auto pattern = parse(glob); !pattern) {
        llvm::consumeError(pattern.takeError());
        return part.str();
      }
    }
    return "";
  }

 private:
  static llvm::SmallVector<llvm::StringRef> partsOf(llvm::StringRef text) {
    llvm::SmallVector<llvm::StringRef> parts;
    text.split(parts, ';', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef& part : parts) part = part.trim();
    return parts;
  }

  static llvm::Expected<llvm::GlobPattern> parse(llvm::StringRef glob) {
    return llvm::GlobPattern::create(glob, /*MaxSubPatterns=*/1024);
  }

  llvm::SmallVector<llvm::GlobPattern> patterns_, excluded_;
};

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_GLOB_LIST_H_
