// The seconds of a step by what they go to, on devices that compute beside what
// they send and on those that do not.
#include "compiler/planner/step_launch.h"

#include <gtest/gtest.h>

namespace partita::planner {
namespace {

StepLaunch Sum(double bytes, bool beside) {
  StepLaunch launch;
  launch.kind = StepLaunch::Kind::kCollective;
  launch.bytes = bytes;
  launch.ranks = {0, 1};
  launch.beside = beside;
  return launch;
}

StepLaunch Kernel(double bytes, bool backward) {
  StepLaunch launch;
  launch.bytes = bytes;
  launch.beside = backward;
  return launch;
}

TEST(PartsOfStep, GradientsAreSentBesideTheBackwardPass) {
  Cluster cluster = *BuiltInCluster("2x a100-80-sxm");
  const StepLaunch forward = Kernel(1e9, false), backward = Kernel(1e9, true),
                   wait = Sum(1e8, false), gradient = Sum(3e8, true);
  const auto time = [&](const StepLaunch& launch) {
    return LaunchTime(cluster, launch);
  };
  ASSERT_GT(time(gradient), time(backward));
  const StepParts parts =
      PartsOfStep(cluster, {forward, wait, backward, gradient});
  EXPECT_DOUBLE_EQ(parts.compute, time(forward) + time(backward));
  EXPECT_DOUBLE_EQ(parts.collectives, time(wait));
  EXPECT_NEAR(parts.gradients, time(gradient) - time(backward), 1e-12);
  EXPECT_DOUBLE_EQ(parts.total(),
                   parts.compute + parts.collectives + parts.gradients);
  // All of them are hidden where there is enough to compute.
  EXPECT_EQ(
      PartsOfStep(cluster, {backward, backward, backward, gradient}).gradients,
      0);
  cluster.device.overlaps = false;
  EXPECT_DOUBLE_EQ(PartsOfStep(cluster, {backward, gradient}).gradients,
                   time(gradient));
}

}  // namespace
}  // namespace partita::planner
