// Expands braces first. The match then backtracks only to the last star, so it
// takes at most pattern length times text length.
#include "compiler/plan/glob.h"

#include <cstddef>

#include "absl/status/statusor.h"
#include "compiler/plan/text.h"

namespace partita::plan {
namespace {

constexpr size_t kMostAlternatives = 256;

absl::Status Refuse(const std::string& pattern, const std::string& found) {
  return absl::InvalidArgumentError(
      "expected a pattern such as h.*.mlp or stages.{0,1}.*, found " +
      Quote(pattern) + ", which " + found);
}

// Index after the ']' that closes the set at `begin`, or npos. A ']' that comes
// first in a set is a literal.
size_t EndOfSet(const std::string& pattern, size_t begin) {
  size_t i = begin + 1;
  if (i < pattern.size() && pattern[i] == '!') ++i;
  const size_t end = pattern.find(']', i + 1);
  return end == std::string::npos ? end : end + 1;
}

// Index of the piece after the one at i. A piece is an escape, a set or a
// character.
size_t NextPiece(const std::string& pattern, size_t i) {
  if (pattern[i] == '\\') return i + 2;
  if (pattern[i] == '[') return EndOfSet(pattern, i);
  return i + 1;
}

// Finds the first brace at or after `from`. `cuts` receives the bounds of its
// alternatives, including the braces. Returns false if there is none.
bool FindBrace(const std::string& pattern, std::vector<size_t>& cuts) {
  cuts.clear();
  int depth = 0;
  for (size_t i = 0; i < pattern.size(); i = NextPiece(pattern, i)) {
    if (pattern[i] == '{' && depth++ == 0) cuts.push_back(i);
    if (pattern[i] == ',' && depth == 1) cuts.push_back(i);
    if (pattern[i] == '}' && --depth == 0) {
      cuts.push_back(i);
      return true;
    }
  }
  return false;
}

absl::StatusOr<std::vector<std::string>> Expand(const std::string& pattern) {
  std::vector<std::string> pending = {pattern}, done;
  std::vector<size_t> cuts;
  while (!pending.empty()) {
    const std::string now = std::move(pending.back());
    pending.pop_back();
    if (!FindBrace(now, cuts)) {
      done.push_back(now);
    } else {
      for (size_t i = cuts.size() - 1; i > 0; --i)
        pending.push_back(
            now.substr(0, cuts[0]) +
            now.substr(cuts[i - 1] + 1, cuts[i] - cuts[i - 1] - 1) +
            now.substr(cuts.back() + 1));
    }
    if (pending.size() + done.size() > kMostAlternatives)
      return Refuse(pattern, "has more than 256 alternatives");
  }
  return done;
}

absl::StatusOr<std::vector<std::string>> Compile(const std::string& pattern) {
  if (pattern.empty()) return Refuse(pattern, "is empty");
  if (pattern.size() > 1000) return Refuse(pattern, "is too long");
  int depth = 0;
  for (size_t i = 0; i < pattern.size();) {
    if (pattern[i] == '{') ++depth;
    if (pattern[i] == '}' && --depth < 0)
      return Refuse(pattern, "closes a brace that is not open");
    if (pattern[i] == ']') return Refuse(pattern, "has ']' without '['");
    if (pattern[i] == '[' && EndOfSet(pattern, i) == std::string::npos)
      return Refuse(pattern, "does not close '['");
    i = NextPiece(pattern, i);
    if (i > pattern.size()) return Refuse(pattern, "ends in a backslash");
  }
  if (depth > 0) return Refuse(pattern, "does not close '{'");
  return Expand(pattern);
}

bool InSet(const std::string& pattern, size_t begin, size_t end, char c) {
  size_t i = begin + 1;
  const bool inverted = pattern[i] == '!';
  if (inverted) ++i;
  bool found = false;
  for (; i + 1 < end; ++i) {
    if (i + 3 < end && pattern[i + 1] == '-') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      found = found || pattern[i] == c;
    }
  }
  return found != inverted;
}

// True if the piece at p, which is not a star, matches the character.
bool MatchesPiece(const std::string& pattern, size_t p, char c) {
  if (pattern[p] == '?') return true;
  if (pattern[p] == '[') return InSet(pattern, p, EndOfSet(pattern, p), c);
  if (pattern[p] == '\\') return pattern[p + 1] == c;
  return pattern[p] == c;
}

bool Matches(const std::string& pattern, const std::string& text) {
  size_t p = 0, t = 0, star = std::string::npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      retry = t;
    } else if (p < pattern.size() && MatchesPiece(pattern, p, text[t])) {
      p = NextPiece(pattern, p);
      ++t;
    } else if (star != std::string::npos) {
      p = star;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

absl::Status CheckGlob(const std::string& pattern) {
  return Compile(pattern).status();
}

bool MatchesGlob(const std::string& pattern, const std::string& text) {
  const absl::StatusOr<std::vector<std::string>> alternatives =
      Compile(pattern);
  if (!alternatives.ok()) return false;
  for (const std::string& alternative : *alternatives)
    if (Matches(alternative, text)) return true;
  return false;
}

bool MatchesScope(const std::vector<std::string>& patterns,
                  const std::string& text) {
  return ScopeGlobs(patterns).Match(text);
}

ScopeGlobs::ScopeGlobs(const std::vector<std::string>& patterns)
    : any_(patterns.empty()) {
  for (const std::string& pattern : patterns)
    if (absl::StatusOr<std::vector<std::string>> expanded = Compile(pattern);
        expanded.ok())
      alternatives_.insert(alternatives_.end(), expanded->begin(),
                           expanded->end());
}

bool ScopeGlobs::Match(const std::string& text) const {
  if (any_) return true;
  for (const std::string& alternative : alternatives_)
    if (Matches(alternative, text)) return true;
  return false;
}

}  // namespace partita::plan
