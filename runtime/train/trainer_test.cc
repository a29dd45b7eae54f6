// Runs the loop around a program that counts, and tests each way of ending it.
#include "runtime/train/trainer.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/train/stop_signal.h"

namespace partita::train {
namespace {

using base::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Batch i holds i, from 1 on.
class Counting : public data::BatchSource {
 public:
  explicit Counting(int64_t batches) : batches_(batches) {
    specs_ = {{"x", DType::kF32, {4, 2}, 32}, {"ids", DType::kI32, {4, 3}, 48}};
  }
  const std::vector<base::TensorSpec>& specs() const override { return specs_; }
  absl::Status Next(data::Batch& batch) override {
    if (at_ == batches_) return absl::OutOfRangeError("no more");
    reinterpret_cast<float*>(batch.data(0))[0] = static_cast<float>(++at_);
    return absl::OkStatus();
  }
  std::string State() const override { return std::to_string(at_); }
  absl::Status Restore(const std::string& state) override {
    at_ = std::stoll(state);
    return absl::OkStatus();
  }

 private:
  std::vector<base::TensorSpec> specs_;
  const int64_t batches_;
  int64_t at_ = 0;
};

// loss = 10 / step, norm = batch; records its inputs.
class FakeStepper : public Stepper {
 public:
  FakeStepper() {
    inputs_ = {{"lr", DType::kF32, {}, 4},
               {"x", DType::kF32, {4, 2}, 32},
               {"step", DType::kI64, {}, 8},
               {"ids", DType::kI32, {4, 3}, 48},
               {"seed", DType::kI64, {}, 8}};
    outputs_ = {{"norm", DType::kF32, {}, 4},
                {"loss", DType::kF32, {1}, 4},
                {"all", DType::kF32, {2}, 8}};
  }
  const std::vector<base::TensorSpec>& inputs() const override {
    return inputs_;
  }
  const std::vector<base::TensorSpec>& outputs() const override {
    return outputs_;
  }
  program::PortRole RoleOf(size_t input) const override {
    using program::PortRole;
    const PortRole roles[] = {PortRole::learning_rate, PortRole::data,
                              PortRole::step, PortRole::data, PortRole::seed};
    return roles[input];
  }
  absl::Status Run(const std::vector<base::ConstTensor>& inputs,
                   const std::vector<base::MutableTensor>& outputs) override {
    const int64_t step = *static_cast<const int64_t*>(inputs[2].data);
    // A prefetched batch is passed in the same memory.
    if (told_ != nullptr) {
      EXPECT_EQ(inputs[1].data, told_);
    }
    told_ = std::exchange(tells_, nullptr);
    if (step == fail_at) return absl::InternalError("it broke");
    rates.push_back(*static_cast<const float*>(inputs[0].data));
    steps.push_back(step);
    batches.push_back(*static_cast<const float*>(inputs[1].data));
    seeds.push_back(*static_cast<const int64_t*>(inputs[4].data));
    *static_cast<float*>(outputs[0].data) = batches.back();
    *static_cast<float*>(outputs[1].data) =
        step == nan_at ? std::numeric_limits<float>::quiet_NaN()
                       : 10.0f / static_cast<float>(step);
    return absl::OkStatus();
  }

  bool LooksAhead() const override { return looks_ahead; }
  absl::Status Prefetch(const std::vector<base::ConstTensor>& inputs) override {
    for (const size_t other : {0, 2, 4})
      EXPECT_EQ(inputs[other].data, nullptr) << other;
    EXPECT_NE(inputs[3].data, nullptr);
    tells_ = inputs[1].data;
    ahead.push_back(*static_cast<const float*>(tells_));
    return absl::OkStatus();
  }

  bool looks_ahead = false;
  std::vector<float> ahead;
  int64_t nan_at = 0, fail_at = 0;
  std::vector<float> rates, batches;
  std::vector<int64_t> steps, seeds;

 private:
  std::vector<base::TensorSpec> inputs_, outputs_;
  // Memory of the next batch and, during a run, of the one after it.
  const void *told_ = nullptr, *tells_ = nullptr;
};

class FakeCheckpoints : public Checkpoints {
 public:
  absl::Status Save(int64_t step, const std::string& data_state) override {
    if (step == fail_at)
      return absl::UnavailableError("ckpt: no space left on device");
    saved.push_back(std::to_string(step) + ":" + data_state);
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    finished = true;
    return absl::OkStatus();
  }
  int64_t fail_at = 0;
  std::vector<std::string> saved;
  bool finished = false;
};

class Recorder : public Observer {
 public:
  absl::Status OnStep(const StepRecord& record) override {
    records.push_back(record);
    return record.step < fail_from ? absl::OkStatus()
                                   : absl::UnavailableError("log: disk full");
  }
  int64_t fail_from = 1000;
  std::vector<StepRecord> records;
};

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    options_.steps = 5;
    options_.schedule.rate = 0.5;
    options_.schedule.steps = 5;
    options_.checkpoints = &checkpoints_;
    options_.observers = {&recorder_};
    options_.say = [this](const std::string& text) { said_.push_back(text); };
  }
  absl::StatusOr<TrainResult> Run() {
    return Train(stepper_, source_, options_);
  }

  FakeStepper stepper_;
  Counting source_{100};
  FakeCheckpoints checkpoints_;
  Recorder recorder_;
  TrainerOptions options_;
  std::vector<std::string> said_;
};

TEST_F(TrainerTest, FeedsAndRecords) {
  options_.schedule.kind = Schedule::Kind::kLinear;
  options_.schedule.warmup = 2;
  options_.schedule.steps = 4;
  options_.steps = 4;
  options_.seed = 7;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(stepper_.steps, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(stepper_.batches, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(stepper_.rates, ElementsAre(0.25, 0.5, 0.5, 0.25));
  EXPECT_EQ(
      std::set<int64_t>(stepper_.seeds.begin(), stepper_.seeds.end()).size(),
      4u);
  EXPECT_THAT(result->losses, ElementsAre(10, 5, 10.0f / 3, 2.5));
  EXPECT_EQ(result->last_step, 4);
  EXPECT_EQ(result->end, TrainResult::End::kSteps);
  ASSERT_EQ(recorder_.records.size(), 4u);
  const StepRecord& record = recorder_.records[1];
  EXPECT_EQ(record.step, 2);
  EXPECT_EQ(record.loss, 5);
  EXPECT_EQ(record.rate, 0.5);
  EXPECT_EQ(record.examples, 4);
  EXPECT_EQ(record.tokens, 12);
  EXPECT_GT(record.seconds, 0);
  ASSERT_EQ(record.scalars.size(), 1u);
  EXPECT_EQ(record.scalars[0], (std::pair<std::string, double>("norm", 2)));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(TrainerTest, SavesNowAndThenAndAtTheEnd) {
  options_.checkpoint_every = 2;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(checkpoints_.saved, ElementsAre("2:2", "4:4", "5:5"));
  EXPECT_TRUE(checkpoints_.finished);
}

TEST_F(TrainerTest, GoesOnWhereItStopped) {
  options_.last_step = 3;
  ASSERT_TRUE(source_.Restore("3").ok());
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(stepper_.steps, ElementsAre(4, 5));
  EXPECT_THAT(stepper_.batches, ElementsAre(4, 5));
  EXPECT_THAT(checkpoints_.saved, ElementsAre("5:5"));
  options_.last_step = 5;
  const auto done = Run();
  ASSERT_TRUE(done.ok());
  EXPECT_THAT(done->losses, IsEmpty());
  EXPECT_THAT(checkpoints_.saved, ElementsAre("5:5"));
  // Step 5 has the seed of step 5, whichever step the session began with.
  const std::vector<int64_t> seeds = stepper_.seeds;
  ASSERT_EQ(seeds.size(), 2u);
  EXPECT_NE(seeds[0], seeds[1]);
  stepper_.seeds.clear();
  options_.last_step = 4;
  ASSERT_TRUE(source_.Restore("4").ok());
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(stepper_.seeds, ElementsAre(seeds[1]));
}

// Each batch is prefetched before the previous run; the saved position is that
// after the computed batch.
TEST_F(TrainerTest, BatchesAreToldAhead) {
  stepper_.looks_ahead = true;
  options_.checkpoint_every = 2;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(stepper_.batches, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(stepper_.ahead, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(checkpoints_.saved, ElementsAre("2:2", "4:4", "5:5"));
  EXPECT_EQ(source_.State(), "5");
}

TEST_F(TrainerTest, WhoLooksAheadGoesOnWhereItStopped) {
  stepper_.looks_ahead = true;
  options_.stop = [&] { return stepper_.steps.back() == 3; };
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(checkpoints_.saved, ElementsAre("3:3"));
  options_.stop = nullptr;
  options_.last_step = 3;
  ASSERT_TRUE(source_.Restore("3").ok());
  FakeStepper again;
  again.looks_ahead = true;
  ASSERT_TRUE(Train(again, source_, options_).ok());
  EXPECT_THAT(again.batches, ElementsAre(4, 5));
}

TEST_F(TrainerTest, TheDataMayEndAheadOfAStep) {
  stepper_.looks_ahead = true;
  Counting two(2);
  const auto result = Train(stepper_, two, options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->last_step, 2);
  EXPECT_EQ(result->end, TrainResult::End::kData);
  EXPECT_THAT(stepper_.ahead, ElementsAre(2));
  EXPECT_THAT(said_, ElementsAre("the data ended after step 2 of 5"));
  EXPECT_THAT(checkpoints_.saved, ElementsAre("2:2"));
}

TEST_F(TrainerTest, FirstLossesOfAPipelineWithoutAFlushAreNotThereYet) {
  options_.late_losses = 1;
  options_.steps = 3;
  auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->losses.size(), 3u);
  EXPECT_TRUE(std::isnan(result->losses[0]));
  EXPECT_EQ(result->losses[1], 5);
  ASSERT_EQ(recorder_.records.size(), 3u);
  EXPECT_TRUE(std::isnan(recorder_.records[0].loss));
  EXPECT_THAT(recorder_.records[0].scalars, IsEmpty());
  EXPECT_EQ(recorder_.records[1].scalars.size(), 1u);
  // A resumed run knows the previous step.
  options_.last_step = 1;
  result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->losses, ElementsAre(5, 10.0f / 3));
  // A long pipeline of few microbatches.
  options_.last_step = 0;
  options_.late_losses = 2;
  result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(std::isnan(result->losses[1]));
  EXPECT_EQ(result->losses[2], 10.0f / 3);
  options_.late_losses = 1;
  // A known loss that is NaN is still an error.
  options_.last_step = 0;
  stepper_.nan_at = 2;
  EXPECT_THAT(std::string(Run().status().message()),
              testing::StartsWith("step 2: the loss is nan (it is the first "
                                  "loss of this session; learning rate 0.5)"));
}

TEST_F(TrainerTest, NotANumberStopsTheRun) {
  stepper_.nan_at = 4;
  options_.checkpoint_every = 2;
  EXPECT_EQ(Run().status().message(),
            "step 4: the loss is nan (3.33333 in the step before; learning "
            "rate 0.5); lower the learning rate, warm up for longer, or clip "
            "gradients; with --debug-nan the same run says which operation "
            "made the first such number; the last checkpoint is of step 2");
  EXPECT_EQ(recorder_.records.size(), 4u);
  EXPECT_THAT(checkpoints_.saved, ElementsAre("2:2"));
}

// There is nothing to save of the step without a loss.
TEST_F(TrainerTest, NotANumberEndsARangeTest) {
  options_.schedule.kind = Schedule::Kind::kRangeTest;
  options_.checkpoint_every = 2;
  for (const int64_t step : {4, 5}) {
    stepper_.nan_at = step;
    ASSERT_TRUE(source_.Restore("0").ok());
    checkpoints_ = FakeCheckpoints();
    const auto result = Run();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->last_step, step);
    EXPECT_EQ(result->end,
              step < 5 ? TrainResult::End::kStopped : TrainResult::End::kSteps);
    EXPECT_TRUE(std::isnan(result->losses.back()));
    EXPECT_EQ(checkpoints_.saved.back(), step < 5 ? "2:2" : "4:4");
    EXPECT_TRUE(checkpoints_.finished);
  }
}

// Without a finite loss there is no rate to report.
TEST_F(TrainerTest, ARangeTestNeedsALoss) {
  options_.schedule.kind = Schedule::Kind::kRangeTest;
  stepper_.nan_at = 1;
  EXPECT_THAT(std::string(Run().status().message()),
              testing::StartsWith("step 1: the loss is nan"));
}

TEST_F(TrainerTest, ErrorsNameTheStep) {
  stepper_.fail_at = 3;
  EXPECT_EQ(Run().status().message(), "step 3: it broke");
}

TEST_F(TrainerTest, TheDataMayEnd) {
  Counting two(2);
  const auto result = Train(stepper_, two, options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->last_step, 2);
  EXPECT_EQ(result->end, TrainResult::End::kData);
  EXPECT_THAT(said_, ElementsAre("the data ended after step 2 of 5"));
  EXPECT_THAT(checkpoints_.saved, ElementsAre("2:2"));
}

TEST_F(TrainerTest, ASignalFinishesTheStep) {
  const StopSignal stop;
  options_.stop = [&] {
    if (stepper_.steps.back() == 3) EXPECT_EQ(std::raise(SIGTERM), 0);
    return stop.Caught();
  };
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->last_step, 3);
  EXPECT_EQ(result->end, TrainResult::End::kStopped);
  EXPECT_EQ(stop.Name(), "SIGTERM");
  EXPECT_THAT(checkpoints_.saved, ElementsAre("3:3"));
}

TEST(StopSignalTest, TheSecondOneEndsTheProcess) {
  EXPECT_EXIT(
      {
        const StopSignal stop;
        std::raise(SIGUSR1);
        if (stop.Name() != "SIGUSR1") _exit(3);
        // The same signal: to the process and to its group.
        std::raise(SIGUSR1);
        std::this_thread::sleep_for(std::chrono::milliseconds(600));
        std::raise(SIGUSR1);
        _exit(4);
      },
      testing::KilledBySignal(SIGUSR1), "");
}

TEST_F(TrainerTest, TroubleAsideIsToldOnce) {
  options_.checkpoint_every = 2;
  checkpoints_.fail_at = 2;
  recorder_.fail_from = 3;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(
      said_, ElementsAre("ckpt: no space left on device; training goes on, the "
                         "checkpoint before stays",
                         "log: disk full; training goes on"));
  EXPECT_THAT(checkpoints_.saved, ElementsAre("4:4", "5:5"));
}

TEST_F(TrainerTest, TheLastCheckpointMustSucceed) {
  checkpoints_.fail_at = 5;
  EXPECT_EQ(Run().status().message(), "ckpt: no space left on device");
}

TEST(FindLossTest, OutputsWithoutOne) {
  EXPECT_EQ(*FindLoss({{"cost", DType::kF32, {}, 4}}), 0u);
  EXPECT_THAT(
      std::string(
          FindLoss({{"logits", DType::kF32, {4, 10}, 160}}).status().message()),
      HasSubstr("as its first output, found 'logits' of f32[4,10]; compile"));
  EXPECT_THAT(std::string(FindLoss({}).status().message()),
              HasSubstr("found no outputs"));
}

}  // namespace
}  // namespace partita::train
