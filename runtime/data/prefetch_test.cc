#include "runtime/data/prefetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/data/source_testing.h"

namespace partita::data {
namespace {

using testing::ElementsAre;

// Counts 0, 1, 2 ...; fails at number `bad`.
class Counter : public BatchSource {
 public:
  explicit Counter(int bad = -1, std::atomic<int>* given = nullptr)
      : bad_(bad), given_(given) {}
  const std::vector<base::TensorSpec>& specs() const override { return specs_; }
  absl::Status Next(Batch& batch) override {
    if (number_ == bad_) return absl::InvalidArgumentError("damaged at 3");
    std::memcpy(batch.data(0), &number_, sizeof(number_));
    ++number_;
    if (given_ != nullptr) ++*given_;
    return absl::OkStatus();
  }
  std::string State() const override { return absl::StrCat(number_); }
  absl::Status Restore(const std::string& state) override {
    if (state == "bad") return absl::InvalidArgumentError("no such state");
    number_ = std::stoi(state);
    return absl::OkStatus();
  }

 private:
  const std::vector<base::TensorSpec> specs_ = {
      Spec("x", base::DType::kI32, {1})};
  const int bad_;
  std::atomic<int>* given_;
  int number_ = 0;
};

std::unique_ptr<BatchSource> Wrap(std::unique_ptr<Counter> counter, int depth) {
  auto source = Prefetch(std::move(counter), depth);
  EXPECT_TRUE(source.ok()) << source.status();
  return std::move(*source);
}

TEST(PrefetchTest, GivesBatchesInOrder) {
  for (int depth : {1, 2, 7}) {
    auto source = Wrap(std::make_unique<Counter>(), depth);
    const std::vector<double> numbers = Draw(*source, 1000);
    for (size_t i = 0; i < numbers.size(); ++i)
      ASSERT_EQ(numbers[i], static_cast<double>(i));
  }
}

TEST(PrefetchTest, ReadsAheadSoFarAndNoFarther) {
  std::atomic<int> given{0};
  auto source = Wrap(std::make_unique<Counter>(-1, &given), 3);
  Draw(*source, 1);
  for (int i = 0; i < 1000 && given < 4; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(given, 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(given, 4);
}

TEST(PrefetchTest, StateIsThatOfWhatWasGiven) {
  auto source = Wrap(std::make_unique<Counter>(), 4);
  EXPECT_EQ(source->State(), "0");
  Draw(*source, 5);
  EXPECT_EQ(source->State(), "5");
  ASSERT_TRUE(source->Restore("2").ok());
  EXPECT_EQ(source->State(), "2");
  EXPECT_THAT(Draw(*source, 3), ElementsAre(2, 3, 4));
  // A refused state changes nothing.
  EXPECT_FALSE(source->Restore("bad").ok());
  EXPECT_THAT(Draw(*source, 2), ElementsAre(5, 6));
}

TEST(PrefetchTest, ErrorsComeInTheirTurnAndStay) {
  auto source = Wrap(std::make_unique<Counter>(3), 8);
  EXPECT_THAT(Draw(*source, 3), ElementsAre(0, 1, 2));
  Batch batch = NewBatch(*source);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(source->Next(batch).message(), "damaged at 3");
  EXPECT_EQ(source->State(), "3");
  ASSERT_TRUE(source->Restore("10").ok());
  EXPECT_THAT(Draw(*source, 20).back(), 29);
}

TEST(PrefetchTest, StopsAtAnyMoment) {
  for (int i = 0; i < 200; ++i) {
    auto source = Wrap(std::make_unique<Counter>(i % 5 == 0 ? 2 : -1), 3);
    Draw(*source, i % 3);
  }
}

TEST(PrefetchTest, RefusesDepthsBelowOne) {
  EXPECT_FALSE(Prefetch(std::make_unique<Counter>(), 0).ok());
}

}  // namespace
}  // namespace partita::data
