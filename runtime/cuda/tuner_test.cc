#include "runtime/cuda/tuner.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace partita::cuda {
namespace {

constexpr char kLibrary[] = "runtime/cuda/recording/librecording.so";

class TunerTest : public ::testing::Test {
 protected:
  TunerTest()
      : file_(::testing::TempDir() + "/tuner_test.algorithms"),
        context_(std::move(Context::Open(
                               std::move(Driver::Open(kLibrary)).value(), 0))
                     .value()) {
    std::remove(file_.c_str());
  }

  // Chooses among algorithms a, b and c, of which only the ones in `works` run.
  size_t Choose(Tuner& tuner, const std::string& works) {
    return tuner.Choose("product", {"a", "b", "c"}, [&] {
      ++asked_;
      return [works](size_t index, CuStream) {
        return works.find("abc"[index]) == std::string::npos
                   ? absl::InternalError("does not run")
                   : absl::OkStatus();
      };
    });
  }
  std::string Kept() const {
    std::ifstream in(file_);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  const std::string file_;
  std::shared_ptr<Context> context_;
  int asked_ = 0;
};

TEST_F(TunerTest, WhatDoesNotRunIsNotKept) {
  Tuner tuner(context_, {file_, true});
  EXPECT_EQ(Choose(tuner, ""), 0u);
  EXPECT_EQ(Kept(), "");
  // Nothing was kept, so the next choice measures again.
  EXPECT_EQ(Choose(tuner, "c"), 2u);
  EXPECT_EQ(asked_, 2);
  EXPECT_EQ(Kept(), "c " + context_->machine().gpu + " product\n");
}

TEST_F(TunerTest, WhatWasMeasuredIsKept) {
  {
    Tuner tuner(context_, {file_, true});
    EXPECT_EQ(Choose(tuner, "b"), 1u);
    EXPECT_EQ(Choose(tuner, "a"), 1u);
  }
  Tuner other(context_, {file_, false});
  EXPECT_EQ(Choose(other, "a"), 1u);
  EXPECT_EQ(asked_, 1);
}

TEST_F(TunerTest, PreparingSpendsTheTimeOfMeasurements) {
  Tuner tuner(context_, {"", true, false, std::chrono::milliseconds(1000)});
  tuner.Spend(std::chrono::milliseconds(999));
  EXPECT_EQ(tuner.left(), std::chrono::milliseconds(1));
  tuner.Spend(std::chrono::milliseconds(1));
  EXPECT_EQ(Choose(tuner, "b"), 0u);
  EXPECT_EQ(asked_, 0);
}

TEST_F(TunerTest, OperationsThatDoNotRunAtFirstAreCounted) {
  int runs = 0;
  const auto warm = [&](Tuner& tuner, const absl::Status& status) {
    tuner.Warm({0, 2}, [&] {
      return [&runs, status](size_t, CuStream) {
        ++runs;
        return status;
      };
    });
  };
  Tuner idle(context_, {"", false, false});
  warm(idle, absl::OkStatus());
  EXPECT_EQ(runs, 0);
  Tuner tuner(context_, {"", false, true});
  warm(tuner, absl::OkStatus());
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(tuner.cold(), 0);
  warm(tuner, absl::InternalError("no"));
  tuner.Warm({0}, [] { return Tuner::Run(); });  // no memory
  EXPECT_EQ(tuner.cold(), 2);
}

}  // namespace
}  // namespace partita::cuda
