#include "compiler/driver/planning/vary_experts.h"

#include <set>
#include <string>

#include "compiler/plan/plan.h"
#include "gtest/gtest.h"

namespace partita::driver {
namespace {

plan::Plan parse(const std::string& text) {
  auto plan = plan::ParsePlan(text, "test");
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

// Mesh and entries, which is all that changes.
std::set<std::string> divisionsOf(const std::vector<plan::Plan>& plans) {
  std::set<std::string> texts;
  for (const plan::Plan& plan : plans) {
    EXPECT_TRUE(plan::CheckPlan(plan).ok());
    std::string text;
    for (const core::Axis& axis : plan.mesh.axes)
      text += (text.empty() ? "" : ",") + axis.name + "=" +
              std::to_string(axis.size);
    text += ":";
    for (const plan::Entry& entry : plan.shard)
      for (const plan::ShardedDimension& each : entry.dimensions) {
        text += " " + each.dimension;
        for (const core::AxisRef& ref : each.axes)
          text += "," + plan.mesh.axes[ref.axis].name;
      }
    texts.insert(text);
  }
  return texts;
}

constexpr char kWhole[] = R"(
mesh: {data: 4, tensor: 2}
shard: [{B: data}, {M: tensor, N: tensor}]
)";

TEST(VaryExpertsTest, DividesWholeExperts) {
  EXPECT_EQ(divisionsOf(expertsOtherwise(parse(kWhole), 8, {})),
            (std::set<std::string>{
                "data=4,tensor=2: B,data X,tensor M,tensor N,tensor",
                "data=2,expert=2,tensor=2: B,data,expert X,expert M,tensor "
                "N,tensor",
                "data=2,expert=2,tensor=2: B,data,expert X,expert,tensor "
                "M,tensor N,tensor",
                "data=4,tensor=2: B,data X,data M,tensor N,tensor",
                "data=4,tensor=2: B,data X,data,tensor M,tensor N,tensor"}));
}

TEST(VaryExpertsTest, JoinsAndSplitsTheAxisOfExperts) {
  const plan::Plan plan = parse(R"(
mesh: {pipe: 2, data: 2, expert: 4}
shard: [{B: [data, expert], D: pipe}, {X: expert}]
experts: {rows: 2}
)");
  EXPECT_EQ(divisionsOf(expertsOtherwise(plan, 8, {})),
            (std::set<std::string>{
                "pipe=2,data=8: B,data D,pipe",
                "pipe=2,data=4,expert=2: B,data,expert D,pipe X,expert",
                "pipe=2,data=8: B,data D,pipe X,data"}));
}

TEST(VaryExpertsTest, BoundsRowsOfExpertsOverTheBatch) {
  for (const plan::Plan& plan : expertsOtherwise(parse(kWhole), 8, {})) {
    bool over_batch = false;
    for (const plan::Entry& entry : plan.shard)
      for (const plan::ShardedDimension& each : entry.dimensions)
        for (const core::AxisRef& ref : each.axes)
          over_batch |= each.dimension == "X" &&
                        plan.mesh.axes[ref.axis].name != "tensor";
    EXPECT_EQ(plan.experts.has_value(), over_batch) << plan::WritePlan(plan);
    if (plan.experts) EXPECT_EQ(plan.experts->rows, 2);
  }
}

TEST(VaryExpertsTest, OnlyNumbersThatDivideTheExperts) {
  EXPECT_EQ(divisionsOf(expertsOtherwise(parse(kWhole), 2, {})),
            (std::set<std::string>{
                "data=4,tensor=2: B,data X,tensor M,tensor N,tensor",
                "data=2,expert=2,tensor=2: B,data,expert X,expert M,tensor "
                "N,tensor"}));
}

TEST(VaryExpertsTest, KeepsWhatIsFixed) {
  planner::FixedChoices fixed;
  fixed.ep = 4;
  EXPECT_TRUE(expertsOtherwise(parse(kWhole), 8, fixed).empty());
  EXPECT_TRUE(expertsOtherwise(parse(kWhole), 0, {}).empty());
}

}  // namespace
}  // namespace partita::driver
