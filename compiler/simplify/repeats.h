// Stretches of a program that repeat, one directly after the other, with the
// same flow of data inside. Plain data.
#ifndef PARTITA_COMPILER_SIMPLIFY_REPEATS_H_
#define PARTITA_COMPILER_SIMPLIFY_REPEATS_H_

#include <cstdint>
#include <vector>

namespace partita::simplify {

// A value that a step of the program reads: result `result` of step `step`, or,
// with a negative step, one that comes from outside.
struct ValueRef {
  int64_t step;
  int64_t result = 0;
};

// One step of a straight-line program. Steps of equal `kind` do the same to
// other values.
struct Step {
  int64_t kind;
  std::vector<ValueRef> operands;
  bool major = false;  // a repeat is worth finding for steps like this
};

// Steps [start, start + period), [start + period, start + 2 period) ... :
// `count` segments. Segments are isomorphic: operand for operand, they read the
// same place of their own segment, or something from outside of it.
struct Repeat {
  int64_t start, period, count;

  int64_t saved() const { return (count - 1) * period; }
  int64_t end() const { return start + count * period; }
};

// Repeats that do not overlap, in order, found from the one that saves most
// downwards. Each segment has at least `min_period` steps and one that is
// major. Of the rotations of one repeat, the one is taken across whose segments
// the fewest values pass, and of these the last.
std::vector<Repeat> findRepeats(const std::vector<Step>& steps,
                                int64_t min_period);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_REPEATS_H_
