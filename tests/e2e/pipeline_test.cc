// Trains the golden models in a pipeline and compares with PyTorch: every
// schedule that flushes, alone and combined with all other divisions.
#include <vector>

#include "gtest/gtest.h"
#include "tests/e2e/training_case.h"

namespace partita::e2e {
namespace {

class PipelineTest : public testing::TestWithParam<TrainingCase> {};

TEST_P(PipelineTest, EqualsPyTorch) {
  TrainingRun run;
  const absl::Status started = run.Start(GetParam());
  ASSERT_TRUE(started.ok()) << started;
  run.ExpectEqualsPyTorch();
}

std::string NameOfParam(const testing::TestParamInfo<TrainingCase>& info) {
  return NameOf(info.param);
}

constexpr const char* kSchedules[] = {"gpipe", "1f1b", "interleaved(2)",
                                      "zb-h1", "zb-v"};
// Schedules with one stage per device.
constexpr const char* kPlainSchedules[] = {"gpipe", "1f1b", "zb-h1"};

constexpr Division kD2 = kDepthDivisions[0], kD4 = kDepthDivisions[1],
                   k3D = kDepthDivisions[2], k3DL = kDepthDivisions[3],
                   kInner = kDepthDivisions[4];
constexpr Division kBatchFirst = kStageDivisions[0],
                   kBatchLast = kStageDivisions[1],
                   kBatchLess = kStageDivisions[2],
                   kRowsFirst = kStageDivisions[3],
                   kBatchThenHeads = kStageDivisions[4];

// The numbers of microbatches into which a model's golden batch can be cut with
// the same results. Batch norms depend on the microbatch; coatnet_64 has
// separate references for two parts.
std::vector<int64_t> CutsOf(const std::string& model) {
  if (model == "gpt2_4l" || model == "vit_3l") return {1, 2, 4, 8};
  if (model == "vit") return {1, 2, 4};
  if (model == "coatnet_bias") return {1};
  return {1, 2};
}

std::vector<TrainingCase> Quick() {
  std::vector<TrainingCase> cases;
  for (const char* model : kModels)
    cases.push_back({model, kD2, 0, {3, true}, "1f1b"});
  for (const char* schedule : kSchedules)
    cases.push_back({"gpt2_4l", kD2, 0, {4}, schedule});
  for (const char* schedule : kPlainSchedules)
    cases.push_back({"gpt2_4l", kD4, 0, {8}, schedule});
  for (int zero : {0, 1, 3})
    cases.push_back({"gpt2_4l", k3D, zero, {2}, "1f1b"});
  cases.push_back({"gpt2_4l", k3DL, 1, {2}, "zb-v"});
  cases.push_back({"coatnet_64", kD2, 0, {2}, "zb-h1"});
  cases.push_back({"vit_3l", kInner, 0, {2}, "interleaved(2)"});
  // The division of tied weights differs where they are used again.
  cases.push_back({"gpt2_4l", kBatchFirst, 0, {2}, "1f1b"});
  cases.push_back({"gpt2_4l", kBatchFirst, 1, {2}, "zb-h1"});
  cases.push_back({"gpt2_4l", kBatchLess, 3, {2}, "1f1b"});
  cases.push_back({"coatnet_64", kRowsFirst, 0, {2}, "1f1b"});
  return cases;
}

// Every model, every schedule, every cut.
std::vector<TrainingCase> Cut() {
  std::vector<TrainingCase> cases;
  for (const char* model : kModels)
    for (const char* schedule : kSchedules)
      for (int64_t count : CutsOf(model))
        cases.push_back({model, kD2, 0, {count}, schedule});
  for (const char* schedule : kPlainSchedules)
    for (int64_t count : CutsOf("gpt2_4l"))
      cases.push_back({"gpt2_4l", kD4, 0, {count}, schedule});
  return cases;
}

// The mean over a batch of equal parts is the mean of one part.
std::vector<TrainingCase> Repeated() {
  std::vector<TrainingCase> cases;
  for (const char* model : kModels)
    for (const char* schedule : kSchedules)
      for (int64_t count : {2, 3, 4})
        cases.push_back({model, kD2, 0, {count, true}, schedule});
  return cases;
}

// All other options combined.
std::vector<TrainingCase> Composed() {
  std::vector<TrainingCase> cases;
  for (const char* model : {"gpt2_4l", "vit_3l", "bert_mlm", "t5", "vit"})
    for (const Division& division : {k3D, k3DL})
      for (int zero : {0, 1, 3})
        for (const char* schedule : kSchedules)
          cases.push_back({model, division, zero, {2}, schedule});
  for (const char* model : kConvModels)
    for (int zero : {0, 1, 3})
      for (const char* schedule : kSchedules)
        cases.push_back({model, k3D, zero, {2, true}, schedule});
  return cases;
}

// Stages with different divisions.
std::vector<TrainingCase> Unlike() {
  std::vector<TrainingCase> cases;
  for (const char* model : {"gpt2_4l", "vit_3l", "bert_mlm", "t5", "vit"})
    for (const Division& division : {kBatchFirst, kBatchLast, kBatchLess})
      for (int zero : {0, 1, 2, 3})
        for (const char* schedule : kPlainSchedules)
          cases.push_back({model, division, zero, {2}, schedule});
  for (const char* model : kConvModels)
    for (const Division& division : {kRowsFirst, kBatchThenHeads})
      for (const char* schedule : kPlainSchedules)
        cases.push_back({model, division, 0, {2, true}, schedule});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Quick, PipelineTest, testing::ValuesIn(Quick()),
                         NameOfParam);
INSTANTIATE_TEST_SUITE_P(Cut, PipelineTest, testing::ValuesIn(Cut()),
                         NameOfParam);
INSTANTIATE_TEST_SUITE_P(Repeated, PipelineTest, testing::ValuesIn(Repeated()),
                         NameOfParam);
INSTANTIATE_TEST_SUITE_P(Unlike, PipelineTest, testing::ValuesIn(Unlike()),
                         NameOfParam);
INSTANTIATE_TEST_SUITE_P(Composed, PipelineTest, testing::ValuesIn(Composed()),
                         NameOfParam);

}  // namespace
}  // namespace partita::e2e
