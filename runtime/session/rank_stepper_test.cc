// Messages and errors of training steps.
#include "runtime/session/rank_stepper.h"

#include <stdlib.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::session {
namespace {

using base::DType;
using program::TrainingProgram;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Floats = std::vector<float>;

constexpr int64_t kRows = 5, kWidth = TrainingProgram::kWidth,
                  kOut = TrainingProgram::kOut;
constexpr char kLibrary[] = "runtime/cuda/recording/librecording.so";

class RankStepperTest : public ::testing::Test {
 protected:
  RankStepperTest() : folder_(::testing::TempDir() + "/stepper_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~RankStepperTest() override { std::filesystem::remove_all(folder_); }

  // Loads a training step for `target` on one device.
  template <typename MakeDevice>
  std::unique_ptr<executor::RankGroup> Load(const std::string& target,
                                            MakeDevice make_device) {
    TrainingProgram program(kRows, 1, 1);
    program::DescribeOutputs(program.program);
    program.program.target = target;
    const std::string path = folder_ + "/model.partita";
    const absl::Status written = program::WriteArtifact(path, program.Parts());
    EXPECT_TRUE(written.ok()) << written;
    executor::GroupOptions options;
    options.make_device = make_device;
    auto ranks = executor::RankGroup::LoadAll(path, options);
    EXPECT_TRUE(ranks.ok()) << ranks.status();
    return ranks.ok() ? *std::move(ranks) : nullptr;
  }

  std::unique_ptr<RankStepper> Step(executor::RankGroup& ranks, bool traced) {
    return std::make_unique<RankStepper>(
        ranks, traced,
        [this](const std::string& text) { said_.push_back(text); });
  }

  std::vector<base::ConstTensor> Inputs(const Floats& x) const {
    return {{DType::kF32, {kRows, kWidth}, x.data()},
            {DType::kF32, {kRows, kOut}, t_.data()},
            {DType::kF32, {}, &rate_},
            {DType::kI64, {}, &step_}};
  }
  std::vector<base::MutableTensor> Outputs() {
    return {{DType::kF32, {}, &loss_}, {DType::kI64, {}, &at_}};
  }

  std::string folder_;
  std::vector<std::string> said_;
  const Floats x_ = Floats(kRows * kWidth, 0.5f);
  const Floats t_ = Floats(kRows * kOut, 0.25f);
  const float rate_ = 0.01f;
  const int64_t step_ = 1;
  float loss_ = -1;
  int64_t at_ = -1;
};

TEST_F(RankStepperTest, MissingMemoryForTheNextBatchIsSaidOnce) {
  cuda::recording::Recording recording(kLibrary);
  {
    const auto ranks = Load("cuda:sm_80", [](int) {
      return cuda::MakeCudaDevice({0, kLibrary, kLibrary, kLibrary});
    });
    ASSERT_NE(ranks, nullptr);
    const auto stepper = Step(*ranks, /*traced=*/false);
    ASSERT_TRUE(stepper->LooksAhead());
    EXPECT_TRUE(stepper->Run(Inputs(x_), Outputs()).ok());
    EXPECT_THAT(said_, IsEmpty());
    recording.FailNext("cuMemAlloc_v2", cuda::kCuOutOfMemory);
    const Floats next(x_);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(stepper->Prefetch(Inputs(next)).ok());
      EXPECT_TRUE(stepper->Run(Inputs(x_), Outputs()).ok());
    }
    EXPECT_THAT(said_, ElementsAre(HasSubstr(
                           "batches are not uploaded ahead of their step, "
                           "because there is too little memory for them: ")));
  }
}

TEST_F(RankStepperTest, NumbersAreLookedAtWhereTheyAreTraced) {
  const auto ranks =
      Load("cpu", [](int) { return cpu::MakeCpuDevice({/*threads=*/1}); });
  ASSERT_NE(ranks, nullptr);
  Floats bad(x_);
  bad[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(Step(*ranks, /*traced=*/false)->Run(Inputs(bad), Outputs()).ok());
  ASSERT_TRUE(ranks->EnableNanTrace().ok());
  EXPECT_THAT(
      std::string(
          Step(*ranks, /*traced=*/true)->Run(Inputs(bad), Outputs()).message()),
      HasSubstr("NaN"));
  EXPECT_THAT(
      std::string(Step(*ranks, /*traced=*/true)->Run({}, Outputs()).message()),
      HasSubstr("expected 4 inputs, found 0"));
}

}  // namespace
}  // namespace partita::session
