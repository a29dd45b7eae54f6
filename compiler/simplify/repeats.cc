// Finds runs of steps that equal the steps one period later, divides them into
// segments, and keeps segments with equal data flow. Quadratic in the number of
// steps.
#include "compiler/simplify/repeats.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace partita::simplify {
namespace {

// A run of steps that each equal the step `period` later. `start` is the first
// step; the repeated stretch ends one period after the run.
struct Run {
  int64_t start, length, period;

  int64_t count() const { return length / period + 1; }
  int64_t saved() const { return (count() - 1) * period; }
};

class Finder {
 public:
  Finder(const std::vector<Step>& steps, int64_t min_period)
      : steps_(steps), min_period_(min_period) {}

  std::vector<Repeat> find() {
    findBetween(0, steps_.size());
    std::sort(
        found_.begin(), found_.end(),
        [](const Repeat& a, const Repeat& b) { return a.start < b.start; });
    return found_;
  }

 private:
  void findBetween(int64_t begin, int64_t end) {
    const std::optional<Repeat> best = bestBetween(begin, end);
    if (!best) return;
    found_.push_back(*best);
    findBetween(begin, best->start);
    findBetween(best->end(), end);
  }

  std::optional<Repeat> bestBetween(int64_t begin, int64_t end) const {
    std::vector<Run> runs;
    for (int64_t period = min_period_; 2 * period <= end - begin; ++period)
      addRuns(begin, end, period, runs);
    std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
      return std::tuple(-a.saved(), a.period, a.start) <
             std::tuple(-b.saved(), b.period, b.start);
    });
    std::optional<Repeat> best;
    for (const Run& run : runs) {
      // Data flow only shortens a run, so it never saves more.
      if (best && best->saved() >= run.saved()) break;
      const std::optional<Repeat> repeat = bestRotation(run);
      if (repeat && (!best || repeat->saved() > best->saved())) best = repeat;
    }
    return best;
  }

  void addRuns(int64_t begin, int64_t end, int64_t period,
               std::vector<Run>& runs) const {
    int64_t length = 0;
    for (int64_t i = begin; i + period <= end; ++i) {
      if (i + period < end && steps_[i].kind == steps_[i + period].kind) {
        ++length;
        continue;
      }
      if (length >= period) runs.push_back({i - length, length, period});
      length = 0;
    }
  }

  std::optional<Repeat> bestRotation(const Run& run) const {
    std::optional<Repeat> best;
    int64_t fewest = 0;
    for (int64_t offset = 0; offset <= run.length % run.period; ++offset) {
      const std::optional<Repeat> repeat =
          longestIsomorphic({run.start + offset, run.period, run.count()});
      if (!repeat) continue;
      const int64_t crossing = valuesCrossing(*repeat);
      const bool better = !best || std::tuple(repeat->count, -crossing) >=
                                       std::tuple(best->count, -fewest);
      if (better) best = repeat, fewest = crossing;
    }
    return best;
  }

  // Returns the longest stretch of isomorphic segments; nullopt if it has fewer
  // than two segments or no major step.
  std::optional<Repeat> longestIsomorphic(const Repeat& repeat) const {
    const auto first = steps_.begin() + repeat.start;
    if (std::none_of(first, first + repeat.period,
                     [](const Step& step) { return step.major; }))
      return std::nullopt;
    std::optional<Repeat> longest;
    for (int64_t segment = 0; segment < repeat.count;) {
      Repeat stretch{repeat.start + segment * repeat.period, repeat.period, 1};
      while (segment + stretch.count < repeat.count &&
             isomorphic(stretch.start, stretch.end(), repeat.period)) {
        ++stretch.count;
      }
      if (stretch.count > 1 && (!longest || stretch.count > longest->count))
        longest = stretch;
      segment += stretch.count;
    }
    return longest;
  }

  bool isomorphic(int64_t a, int64_t b, int64_t period) const {
    for (int64_t i = 0; i < period; ++i) {
      const std::vector<ValueRef>&x = steps_[a + i].operands,
            &y = steps_[b + i].operands;
      if (x.size() != y.size()) return false;
      for (size_t k = 0; k < x.size(); ++k) {
        const bool inside_x = x[k].step >= a, inside_y = y[k].step >= b;
        if (inside_x != inside_y) return false;
        if (inside_x &&
            (x[k].step - a != y[k].step - b || x[k].result != y[k].result))
          return false;
      }
    }
    return true;
  }

  // Returns the number of values that the last segment reads from other steps,
  // plus the number of results of the first segment that later steps read.
  int64_t valuesCrossing(const Repeat& repeat) const {
    std::set<std::pair<int64_t, int64_t>> in, out;
    const int64_t last = repeat.end() - repeat.period,
                  first_end = repeat.start + repeat.period;
    for (int64_t i = last; i < repeat.end(); ++i) {
      for (const ValueRef& ref : steps_[i].operands) {
        if (ref.step >= 0 && ref.step < last) in.insert({ref.step, ref.result});
      }
    }
    for (int64_t i = first_end; i < static_cast<int64_t>(steps_.size()); ++i) {
      for (const ValueRef& ref : steps_[i].operands) {
        if (ref.step >= repeat.start && ref.step < first_end)
          out.insert({ref.step, ref.result});
      }
    }
    return in.size() + out.size();
  }

  const std::vector<Step>& steps_;
  const int64_t min_period_;
  std::vector<Repeat> found_;
};

}  // namespace

std::vector<Repeat> findRepeats(const std::vector<Step>& steps,
                                int64_t min_period) {
  return Finder(steps, std::max<int64_t>(min_period, 1)).find();
}

}  // namespace partita::simplify
