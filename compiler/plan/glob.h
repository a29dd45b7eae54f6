// Patterns for names of layers and tensors. `*` matches any characters
// including dots, `?` one character, [abc] and [a-z] one character of a set,
// [!a] one outside it, {a,b} any alternative (may nest). A backslash makes the
// next character literal.
#ifndef PARTITA_COMPILER_PLAN_GLOB_H_
#define PARTITA_COMPILER_PLAN_GLOB_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace partita::plan {

// Refuses invalid patterns: empty ones, unbalanced brackets or braces, and more
// than 256 alternatives in total.
absl::Status CheckGlob(const std::string& pattern);
// True if the pattern matches the whole text. False if CheckGlob refuses it.
bool MatchesGlob(const std::string& pattern, const std::string& text);

// Patterns that are read once to be matched with many texts.
class ScopeGlobs {
 public:
  explicit ScopeGlobs(const std::vector<std::string>& patterns);
  // True if any pattern matches the whole text, or if there are no patterns.
  bool Match(const std::string& text) const;

 private:
  bool any_;                               // there are no patterns
  std::vector<std::string> alternatives_;  // without braces
};

// Same as ScopeGlobs, for one text.
bool MatchesScope(const std::vector<std::string>& patterns,
                  const std::string& text);

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_GLOB_H_
