// Tests that PLAN.md names every field and word, and that its examples are
// valid.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "compiler/plan/names.h"
#include "compiler/plan/plan.h"

namespace partita::plan {
namespace {

std::string Reference() {
  std::ifstream file("compiler/plan/PLAN.md");
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

std::vector<std::string> All(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end;
       ++it)
    found.push_back((*it)[1]);
  return found;
}

TEST(Reference, HasASectionPerFieldInOrder) {
  std::vector<std::string> sections = All(Reference(), "\n## ([a-z]+)");
  EXPECT_EQ(sections, FieldNames());
}

TEST(Reference, HasEveryWord) {
  std::vector<std::string> words = BudgetKinds();
  for (const auto& [word, kind] : ScheduleNames()) words.push_back(word);
  for (const auto& [word, policy] : RecomputeNames()) words.push_back(word);
  for (const auto& [word, precision] : PrecisionNames()) words.push_back(word);
  for (const auto& [word, offload] : OffloadNames()) words.push_back(word);
  for (const auto& [word, way] : AttentionNames()) words.push_back(word);
  for (const auto& [word, way] : ExpertNames()) words.push_back(word);
  for (const auto& [word, hold] : HoldNames()) words.push_back(word);
  for (const std::string& name : KnownDimensions()) words.push_back(name);
  const std::string text = Reference();
  for (const std::string& word : words)
    EXPECT_NE(text.find("`" + word + "`"), std::string::npos) << word;
}

TEST(Reference, ItsPlansAndOptionsAreInOrder) {
  const std::string text = Reference();
  const std::vector<std::string> plans = All(text, "```yaml\n([^`]*)```");
  ASSERT_FALSE(plans.empty());
  for (const std::string& plan : plans) {
    const absl::StatusOr<Plan> parsed = ParsePlan(plan, "PLAN.md");
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  }
  const absl::StatusOr<core::Mesh> mesh =
      ParseMeshOption("data=8,fsdp=2,tensor=8");
  ASSERT_TRUE(mesh.ok());
  const std::vector<std::string> options = All(text, "--shard \"([^\"]*)\"");
  EXPECT_GE(options.size(), 2u);
  for (const std::string& option : options) {
    const auto entries = ParseShardOption(option, *mesh);
    EXPECT_TRUE(entries.ok()) << entries.status().message();
  }
}

TEST(Reference, ItsShardingsAreInOrder) {
  core::Mesh mesh;
  mesh.axes = {{"a", 2}, {"b", 4}, {"c", 2}, {"d", 2}, {"tensor", 2}};
  const std::vector<std::string> shardings =
      All(Reference(), "[`\"](\\[\\{[^`\"]*\\}\\])[`\"]");
  EXPECT_GE(shardings.size(), 2u);
  for (const std::string& text : shardings) {
    if (text.find(':') != std::string::npos &&
        text.find("(1)") == std::string::npos)
      continue;  // a list of maps, in YAML
    const auto sharding = ParseShardingText(text, mesh);
    EXPECT_TRUE(sharding.ok()) << sharding.status().message();
  }
}

}  // namespace
}  // namespace partita::plan
