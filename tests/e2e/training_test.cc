// Trains the golden models and compares with PyTorch, on one device and under
// plans.
#include <tuple>

#include "gtest/gtest.h"
#include "tests/e2e/training_case.h"

namespace partita::e2e {
namespace {

constexpr Microbatches kOneBatch;

using Case = std::tuple<const char*, Division, int, Microbatches>;

TrainingCase CaseOf(const Case& given) {
  const auto& [model, division, zero, microbatches] = given;
  TrainingCase which;
  which.model = model;
  which.division = division;
  which.zero = zero;
  which.microbatches = microbatches;
  return which;
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  return NameOf(CaseOf(info.param));
}

class TrainingTest : public testing::TestWithParam<Case> {};

TEST_P(TrainingTest, EqualsPyTorch) {
  TrainingRun run;
  const absl::Status started = run.Start(CaseOf(GetParam()));
  ASSERT_TRUE(started.ok()) << started;
  run.ExpectEqualsPyTorch();
}

// The same models, imported from their configs.
class FolderTrainingTest : public TrainingTest {};

TEST_P(FolderTrainingTest, EqualsPyTorch) {
  TrainingCase which = CaseOf(GetParam());
  which.from_folder = true;
  TrainingRun run;
  const absl::Status started = run.Start(which);
  ASSERT_TRUE(started.ok()) << started;
  run.ExpectEqualsPyTorch();
}

const auto kNoZero = testing::Values(0);
const auto kOne = testing::Values(kOneBatch);
INSTANTIATE_TEST_SUITE_P(Whole, TrainingTest,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::Values(kWhole), kNoZero,
                                          kOne),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Divided, TrainingTest,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::ValuesIn(kDivisions),
                                          kNoZero, kOne),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(LongSequences, TrainingTest,
                         testing::Combine(testing::ValuesIn(kLongModels),
                                          testing::ValuesIn(kLongDivisions),
                                          kNoZero, kOne),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(SeveralAxes, TrainingTest,
                         testing::Combine(testing::ValuesIn(kTensorModels),
                                          testing::ValuesIn(kTensorDivisions),
                                          kNoZero, kOne),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Images, TrainingTest,
                         testing::Combine(testing::ValuesIn(kConvModels),
                                          testing::ValuesIn(kImageDivisions),
                                          kNoZero, kOne),
                         NameOf);

constexpr Division kWithStates[] = {
    {"B2", "d=2", "B=d"},
    {"B3", "d=3", "B=d"},
    {"B4", "d=4", "B=d"},
    {"B2MNV2", "d=2,t=2", "B=d;M=t,N=t,V=t"},
};
INSTANTIATE_TEST_SUITE_P(Zero, TrainingTest,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::ValuesIn(kWithStates),
                                          testing::Values(1, 2, 3), kOne),
                         NameOf);

// Batch norms depend on the microbatch; coatnet_64 has separate references for
// two parts with their own statistics.
constexpr const char* kCutModels[] = {"bert_mlm", "gpt2", "t5", "vit",
                                      "coatnet_64"};
constexpr const char* kLargeBatches[] = {"gpt2_4l", "vit_3l"};
constexpr Division kCutDivisions[] = {
    kWhole, {"B2", "d=2", "B=d"}, {"B2MNV2", "d=2,t=2", "B=d;M=t,N=t,V=t"}};
INSTANTIATE_TEST_SUITE_P(Cut, TrainingTest,
                         testing::Combine(testing::ValuesIn(kCutModels),
                                          testing::ValuesIn(kCutDivisions),
                                          kNoZero,
                                          testing::Values(Microbatches{2})),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(CutIntoFour, TrainingTest,
                         testing::Combine(testing::ValuesIn(kLargeBatches),
                                          testing::ValuesIn(kCutDivisions),
                                          kNoZero,
                                          testing::Values(Microbatches{4})),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(
    CutZero, TrainingTest,
    testing::Combine(testing::Values("gpt2_4l", "coatnet_64"),
                     testing::Values(kWithStates[0], kWithStates[1],
                                     kWithStates[3]),
                     testing::Values(1, 2, 3),
                     testing::Values(Microbatches{2})),
    NameOf);
INSTANTIATE_TEST_SUITE_P(
    Repeated, TrainingTest,
    testing::Combine(testing::ValuesIn(kModels),
                     testing::Values(kWhole, kDivisions[6]), kNoZero,
                     testing::Values(Microbatches{3, true})),
    NameOf);

constexpr const char* kFolderModels[] = {"gpt2", "coatnet_64", "coatnet_bias"};
constexpr Division kFolderDivisions[] = {kWhole, {"B2", "d=2", "B=d"}};
INSTANTIATE_TEST_SUITE_P(Folder, FolderTrainingTest,
                         testing::Combine(testing::ValuesIn(kFolderModels),
                                          testing::ValuesIn(kFolderDivisions),
                                          kNoZero, kOne),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(FolderImages, FolderTrainingTest,
                         testing::Combine(testing::Values("coatnet_bias"),
                                          testing::Values(kImageDivisions[0]),
                                          kNoZero, kOne),
                         NameOf);

}  // namespace
}  // namespace partita::e2e
