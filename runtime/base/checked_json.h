// JSON from files that are not trusted: syntax and depth are checked first.
#ifndef PARTITA_RUNTIME_BASE_CHECKED_JSON_H_
#define PARTITA_RUNTIME_BASE_CHECKED_JSON_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace partita::base {

struct JsonError {
  // For "expected JSON, found ...".
  std::string found;
  // One-based byte of a syntax error; 0 if the text nests too deep.
  size_t position = 0;
};

// Parses `text`. Returns a discarded value and sets `error` if it is not JSON,
// or nests more than 256 levels deep, which would exhaust the stack.
nlohmann::json ParseJson(std::string_view text, JsonError& error);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_CHECKED_JSON_H_
