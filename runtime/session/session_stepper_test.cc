// Messages and errors of a session's steps.
#include "runtime/session/session_stepper.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::session {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs nothing.
class QuietSession : public Session {
 public:
  const std::vector<executor::TensorSpec>& inputs() const override {
    return specs;
  }
  const std::vector<executor::TensorSpec>& outputs() const override {
    return specs;
  }
  int64_t step_count() const override { return 0; }
  int devices() const override { return 1; }
  void EnableProfile() override {}
  std::vector<executor::Profile*> profiles() override { return {}; }
  absl::Status Run(const std::vector<executor::ConstTensor>&,
                   const std::vector<executor::MutableTensor>&) override {
    ++runs;
    return run;
  }
  std::string NotAhead() const override { return not_ahead; }
  absl::Status EnableNanTrace() override { return absl::OkStatus(); }
  absl::Status CheckFinite() override { return finite; }
  const program::Program& program() const override { return *none; }
  double FlopsPerRun() const override { return 0; }
  const std::vector<executor::ParameterSpec>& parameters() const override {
    return parameter_specs;
  }
  absl::Status ReadPart(const Part&, void*) override {
    return absl::OkStatus();
  }
  absl::Status WriteParameter(const std::string&,
                              const executor::ConstTensor&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<executor::RankUse>> Uses() override {
    return std::vector<executor::RankUse>();
  }

  std::vector<executor::TensorSpec> specs;
  std::vector<executor::ParameterSpec> parameter_specs;
  const program::Program* none = nullptr;
  int runs = 0;
  absl::Status run, finite;
  std::string not_ahead;
};

class SessionStepperTest : public ::testing::Test {
 protected:
  std::unique_ptr<SessionStepper> Step(bool traced) {
    return std::make_unique<SessionStepper>(
        session_, traced,
        [this](const std::string& text) { said_.push_back(text); });
  }

  QuietSession session_;
  std::vector<std::string> said_;
};

TEST_F(SessionStepperTest, MissingMemoryForTheNextBatchIsSaidOnce) {
  const auto stepper = Step(/*traced=*/false);
  EXPECT_TRUE(stepper->Run({}, {}).ok());
  EXPECT_THAT(said_, IsEmpty());
  session_.not_ahead = "rank 2: allocating 72 bytes";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(stepper->Run({}, {}).ok());
  EXPECT_THAT(said_,
              ElementsAre("batches are not uploaded ahead of their step, "
                          "because there is too little memory for them: "
                          "rank 2: allocating 72 bytes"));
  EXPECT_EQ(session_.runs, 4);
}

TEST_F(SessionStepperTest, NumbersAreLookedAtWhereTheyAreTraced) {
  session_.finite = absl::FailedPreconditionError("h.0 made the first NaN");
  EXPECT_TRUE(Step(/*traced=*/false)->Run({}, {}).ok());
  EXPECT_THAT(std::string(Step(/*traced=*/true)->Run({}, {}).message()),
              HasSubstr("h.0 made"));
  session_.run = absl::InternalError("the step failed");
  EXPECT_THAT(std::string(Step(/*traced=*/true)->Run({}, {}).message()),
              HasSubstr("the step failed"));
}

}  // namespace
}  // namespace partita::session
