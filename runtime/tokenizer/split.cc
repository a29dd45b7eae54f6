// Cuts the text into segments that match or do not, then joins neighbours.
#include "runtime/tokenizer/split.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace partita::tokenizer {
namespace {

struct Segment {
  Range range;
  bool matches;
};

std::vector<Segment> SegmentsOf(size_t size, const std::vector<Range>& matches,
                                bool invert) {
  std::vector<Segment> segments;
  size_t done = 0;
  const auto add_unmatched = [&](size_t end) {
    if (done < end) segments.push_back({{done, end}, invert});
  };
  // An empty match separates the segments beside it.
  for (const Range& match : matches) {
    add_unmatched(match.first);
    segments.push_back({match, !invert});
    done = match.second;
  }
  add_unmatched(size);
  return segments;
}

// True if the segment joins the one before it in the order of the walk.
bool Joins(Behavior behavior, const Segment& segment, bool after_match) {
  return behavior == Behavior::kContiguous ? segment.matches == after_match
                                           : segment.matches && !after_match;
}

}  // namespace

absl::StatusOr<Behavior> ParseBehavior(const std::string& text,
                                       const std::string& where) {
  if (text == "Removed") return Behavior::kRemoved;
  if (text == "Isolated") return Behavior::kIsolated;
  if (text == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (text == "MergedWithNext") return Behavior::kMergedWithNext;
  if (text == "Contiguous") return Behavior::kContiguous;
  return absl::InvalidArgumentError(absl::StrCat(
      where,
      ".behavior: expected one of Removed, Isolated, MergedWithPrevious, "
      "MergedWithNext, Contiguous; found '",
      text, "'"));
}

std::vector<Range> SplitAt(size_t size, const std::vector<Range>& matches,
                           Behavior behavior, bool invert) {
  std::vector<Segment> segments = SegmentsOf(size, matches, invert);
  const bool backwards = behavior == Behavior::kMergedWithNext;
  if (backwards) std::reverse(segments.begin(), segments.end());
  std::vector<Range> pieces;
  bool after_match = false;
  for (const Segment& segment : segments) {
    const bool is_removed = behavior == Behavior::kRemoved && segment.matches;
    const bool stands_alone =
        behavior == Behavior::kRemoved || behavior == Behavior::kIsolated;
    if (!stands_alone && !pieces.empty() &&
        Joins(behavior, segment, after_match)) {
      if (backwards)
        pieces.back().first = segment.range.first;
      else
        pieces.back().second = segment.range.second;
    } else if (!is_removed) {
      pieces.push_back(segment.range);
    }
    after_match = segment.matches;
  }
  if (backwards) std::reverse(pieces.begin(), pieces.end());
  pieces.erase(std::remove_if(pieces.begin(), pieces.end(),
                              [](const Range& piece) {
                                return piece.first == piece.second;
                              }),
               pieces.end());
  return pieces;
}

}  // namespace partita::tokenizer
