// Finds stretches of a program that repeat consecutively with equal data flow
// inside. Works on plain data.
#ifndef PARTITA_COMPILER_SIMPLIFY_REPEATS_H_
#define PARTITA_COMPILER_SIMPLIFY_REPEATS_H_

#include <cstdint>
#include <vector>

namespace partita::simplify {

// A value that a step reads: result `result` of step `step`. A negative step is
// a value from outside.
struct ValueRef {
  int64_t step;
  int64_t result = 0;
};

// One step of a straight-line program. Steps of equal `kind` perform the same
// operation on different values.
struct Step {
  int64_t kind;
  std::vector<ValueRef> operands;
  bool major = false;  // only repeats with such a step are worthwhile
};

// `count` segments: steps [start, start + period), [start + period, start + 2
// period), ... Segments are isomorphic: corresponding operands read the same
// place of their own segment, or a value from outside of it.
struct Repeat {
  int64_t start, period, count;

  int64_t saved() const { return (count - 1) * period; }
  int64_t end() const { return start + count * period; }
};

// Returns disjoint repeats in order; repeats that save most steps are chosen
// first. Each segment has at least `min_period` steps and a major one. Among
// the rotations of a repeat, the one with the fewest values passing between
// segments is chosen, and among these the last.
std::vector<Repeat> findRepeats(const std::vector<Step>& steps,
                                int64_t min_period);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_REPEATS_H_
