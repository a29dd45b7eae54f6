// Splits a text at matches of a pattern.
#ifndef PARTITA_RUNTIME_TOKENIZER_SPLIT_H_
#define PARTITA_RUNTIME_TOKENIZER_SPLIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {

// Places matches in pieces.
enum class Behavior {
  kRemoved,
  kIsolated,            // each is a piece
  kMergedWithPrevious,  // each ends the piece before it
  kMergedWithNext,      // each begins the piece after it
  kContiguous           // neighbours are one piece
};
absl::StatusOr<Behavior> ParseBehavior(const std::string& text,
                                       const std::string& where);

// Returns the pieces of a text of `size` bytes, none empty. `matches` are in
// order and may be empty. With `invert`, the text between them matches.
std::vector<Range> SplitAt(size_t size, const std::vector<Range>& matches,
                           Behavior behavior, bool invert);

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_SPLIT_H_
