// Tests small programs with layers, written as strings of step kinds.
#include "compiler/simplify/repeats.h"

#include <gtest/gtest.h>

#include <string>

namespace partita::simplify {
namespace {

// Makes a step per letter; each reads the previous step. Capital letters are
// major.
std::vector<Step> chain(const std::string& kinds) {
  std::vector<Step> steps;
  for (size_t i = 0; i < kinds.size(); ++i) {
    steps.push_back({kinds[i],
                     {{static_cast<int64_t>(i) - 1}},
                     std::isupper(kinds[i]) != 0});
  }
  return steps;
}

std::string describe(const std::vector<Repeat>& repeats) {
  std::string text;
  for (const Repeat& repeat : repeats) {
    text += std::to_string(repeat.start) + ":" + std::to_string(repeat.count) +
            "x" + std::to_string(repeat.period) + " ";
  }
  return text;
}

TEST(RepeatsTest, NothingRepeats) {
  EXPECT_EQ(describe(findRepeats({}, 1)), "");
  EXPECT_EQ(describe(findRepeats(chain("ABCDEFG"), 1)), "");
}

TEST(RepeatsTest, PrologueAndEpilogueStayOutside) {
  EXPECT_EQ(describe(findRepeats(chain("xyAbcAbcAbcz"), 2)), "2:3x3 ");
}

TEST(RepeatsTest, ShortestPeriodSavesMost) {
  EXPECT_EQ(describe(findRepeats(chain("AbAbAbAb"), 2)), "0:4x2 ");
}

TEST(RepeatsTest, TwoKindsOfLayers) {
  EXPECT_EQ(describe(findRepeats(chain("AbcAbcAbcxDefgDefg"), 2)),
            "0:3x3 10:2x4 ");
}

TEST(RepeatsTest, WantsAMajorStep) {
  EXPECT_EQ(describe(findRepeats(chain("abcabcabc"), 2)), "");
  EXPECT_EQ(describe(findRepeats(chain("abCabCabC"), 2)), "0:3x3 ");
}

TEST(RepeatsTest, MinimumPeriod) {
  EXPECT_EQ(describe(findRepeats(chain("ABABAB"), 3)), "");
  // Two layers together reach the minimum period.
  EXPECT_EQ(describe(findRepeats(chain("ABABABAB"), 3)), "0:2x4 ");
}

// Pre-norm layers (n: norm, A: attention, r: residual sum) and a final norm. r
// also reads its layer's input.
std::vector<Step> residualLayers(int64_t layers) {
  std::vector<Step> steps = {{'e', {{-1}}}};
  for (int64_t i = 0; i < layers; ++i) {
    const int64_t input = steps.size() - 1;
    steps.push_back({'n', {{input}}});
    steps.push_back({'A', {{input + 1}}, true});
    steps.push_back({'r', {{input}, {input + 2}}});
  }
  steps.push_back({'n', {{static_cast<int64_t>(steps.size()) - 1}}});
  return steps;
}

TEST(RepeatsTest, RotationWithFewestCrossingValues) {
  // Two values cross from norm to norm, one from sum to sum.
  EXPECT_EQ(describe(findRepeats(residualLayers(4), 2)), "1:4x3 ");
}

TEST(RepeatsTest, OfEqualRotationsTheLast) {
  // Post-norm: the embedding ends in a norm, like each layer.
  EXPECT_EQ(describe(findRepeats(chain("enAfnAfn"), 2)), "2:2x3 ");
}

TEST(RepeatsTest, OtherDataFlowIsAnotherLayer) {
  std::vector<Step> steps = residualLayers(4);
  steps.pop_back();
  // The first layer's sum reads the layer's own norm.
  steps[3].operands[0] = {1};
  EXPECT_EQ(describe(findRepeats(steps, 2)), "4:3x3 ");
}

TEST(RepeatsTest, SharedValuesMayComeFromAnywhere) {
  std::vector<Step> steps = residualLayers(3);
  // Each attention reads a mask from outside and the embedding.
  for (Step& step : steps) {
    if (step.major) step.operands.insert(step.operands.end(), {{-2}, {0}});
  }
  EXPECT_EQ(describe(findRepeats(steps, 2)), "1:3x3 ");
}

}  // namespace
}  // namespace partita::simplify
