// What a sketch holds at once.
#include "compiler/planner/program_sketch.h"

#include <gtest/gtest.h>

namespace partita::planner {
namespace {

using Value = ProgramSketch::Value;

// D13, the case of memory. Five operations of 10 bytes of parameters with
// states, of which 1, 2, 3, 4 and 5 count elsewhere; 9 of buffers; 1, 3 and 4
// are kept, of two segments that are computed again, of 1 + 2 and 3 + 4 + 5;
// the update takes 15 besides. nnScaler adds the most of each to 71: 35 + 9 +
// max(8, 15) + 12. There is no such moment: what is computed again is gone
// before the update, so 8 and 12 are there at once, or 15, and all is 64.
TEST(ProgramSketch, D13PeakIsOfOneMoment) {
  const double parameters = 5 * 10 - (1 + 2 + 3 + 4 + 5), buffers = 5 + 4;
  EXPECT_EQ(parameters + buffers + 15 + 12, 71);
  ProgramSketch step(2, Precision::kBf16);
  const Value first = step.Call(0, {}, {1})[0];
  const Value second = step.Call(0, {first}, {3})[0];
  const Value third = step.Call(0, {second}, {4})[0];
  step.Call(3 + 4 + 5, {second, third}, {});
  step.Call(1 + 2, {first}, {});
  step.Call(1 + 2 + 3 + 4 + 5, {}, {});
  EXPECT_EQ(parameters + buffers + step.FrameBytes(), 64);
}

TEST(ProgramSketch, ValuesLiveFromFirstToLastUse) {
  ProgramSketch f(2, Precision::kBf16);
  const Value x = f.Argument(100);
  const Value a = f.Kernel({x}, 10);
  const Value b = f.Kernel({a}, 20);
  f.Return(f.Kernel({b}, 40));
  EXPECT_EQ(f.FrameBytes(), 30);
  EXPECT_EQ(f.ReturnedBytes(), 40);
}

}  // namespace
}  // namespace partita::planner
