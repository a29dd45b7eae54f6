// Patterns over names of layers and tensors: * any characters, dots included,
// ? one character, [abc] [a-z] [!a] one of (not of) a set, {a,b} alternatives,
// which may nest; a backslash takes the next character as it is.
#ifndef PARTITA_COMPILER_PLAN_GLOB_H_
#define PARTITA_COMPILER_PLAN_GLOB_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace partita::plan {

// Refuses what is not a pattern: unbalanced brackets or braces, an empty
// pattern, more than 256 alternatives in all.
absl::Status CheckGlob(const std::string& pattern);
// Whether the pattern matches the whole text; false where CheckGlob refuses.
bool MatchesGlob(const std::string& pattern, const std::string& text);
// Whether any does; true where there are none.
bool MatchesScope(const std::vector<std::string>& patterns,
                  const std::string& text);

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_GLOB_H_
