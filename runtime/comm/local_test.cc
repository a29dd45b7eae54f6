// Ranks as threads: results against the reference, and behaviour when a rank
// dies, stalls, or runs a different operation.
#include "runtime/comm/local.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/comm/row_cases.h"
#include "runtime/comm/started_cases.h"
#include "runtime/comm/test_cases.h"

namespace partita::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

Operation Sum(std::vector<int64_t> shape, const std::string& name) {
  Operation op;
  op.input_shape = op.output_shape = std::move(shape);
  op.name = name;
  return op;
}

// Status of `body` on each of n ranks.
template <typename Body>
std::vector<absl::Status> OnRanks(int n, milliseconds timeout,
                                  const Body& body) {
  const auto communicators = MakeLocalCommunicators(n, {timeout});
  std::vector<absl::Status> statuses(static_cast<size_t>(n));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < statuses.size(); ++i) {
    threads.emplace_back([&, i] { statuses[i] = body(*communicators[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

absl::Status RunOnce(Communicator& communicator, const Operation& op,
                     const std::vector<int>& ranks) {
  const std::string input = TestInput(op, communicator.rank());
  std::string output(static_cast<size_t>(op.OutputBytes()), '\0');
  auto collective = communicator.Prepare(op, ranks);
  if (!collective.ok()) return collective.status();
  return communicator.Run(**collective, input.data(), output.data());
}

TEST(LocalTest, AllKindsEqualTheReference) {
  CheckAgainstReference([](int n) { return MakeLocalCommunicators(n); });
}

TEST(LocalTest, RowsTravelAndReturn) {
  CheckRows([](int n) { return MakeLocalCommunicators(n); });
}

TEST(LocalTest, GroupsWorkSideBySide) {
  // Rows and columns of a 2 x 3 mesh, many times, without waiting in between.
  const auto statuses =
      OnRanks(6, milliseconds(20000), [](Communicator& c) -> absl::Status {
        const int row = c.rank() / 3, column = c.rank() % 3;
        auto across =
            c.Prepare(Sum({64}, "row"), {row * 3, row * 3 + 1, row * 3 + 2});
        auto down = c.Prepare(Sum({64}, "column"), {column, column + 3});
        if (!across.ok() || !down.ok()) return absl::InternalError("prepare");
        for (int i = 0; i < 200; ++i) {
          std::vector<float> value(64, static_cast<float>(c.rank() + i));
          std::vector<float> sum(64);
          absl::Status status = c.Run(**across, value.data(), sum.data());
          if (status.ok()) status = c.Run(**down, sum.data(), sum.data());
          if (!status.ok()) return status;
          if (sum[63] != static_cast<float>(15 + 6 * i))
            return absl::InternalError("wrong sum");
        }
        return absl::OkStatus();
      });
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
}

TEST(LocalTest, Transfers) {
  CheckTransfers([](int n, milliseconds timeout) {
    return MakeLocalCommunicators(n, {timeout});
  });
}

TEST(LocalTest, StartedOperations) {
  CheckStarted([](int n, milliseconds timeout) {
    return MakeLocalCommunicators(n, {timeout});
  });
}

TEST(LocalTest, SumsHaveTheSameBitsEverywhere) {
  const auto communicators = MakeLocalCommunicators(5);
  const Operation op = Sum({100003}, "noise");
  std::vector<std::string> inputs(5);
  uint32_t state = 1;
  for (std::string& input : inputs) {
    for (int64_t i = 0; i < 100003; ++i) {
      state = state * 1664525 + 1013904223;
      const float value = static_cast<float>(state) * 1e-3f;
      input.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  const auto outputs = RunOnThreads(communicators, op, inputs);
  for (size_t i = 1; i < outputs.size(); ++i)
    EXPECT_EQ(outputs[0] == outputs[i], true) << i;
}

TEST(LocalTest, ARankThatStallsIsNamed) {
  const auto begin = std::chrono::steady_clock::now();
  const auto statuses =
      OnRanks(4, milliseconds(200), [](Communicator& c) -> absl::Status {
        if (c.rank() == 2) {
          std::this_thread::sleep_for(milliseconds(1500));
          return c.Progress();
        }
        return RunOnce(c, Sum({8}, "h.3.mlp"), {0, 1, 2, 3});
      });
  for (const absl::Status& status : statuses) {
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("rank 2 did not arrive at all_reduce 'h.3.mlp' "
                                "of f32[8] within 200 ms and made no progress"),
                      HasSubstr("; if it is alive and slow, raise --timeout")));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(5000));
}

TEST(LocalTest, WhoWaitsIsNotBlamed) {
  // Rank 0 waits for 1, and 1 waits for 2, which stalls.
  const auto statuses =
      OnRanks(3, milliseconds(200), [](Communicator& c) -> absl::Status {
        if (c.rank() == 2) {
          std::this_thread::sleep_for(milliseconds(1500));
          return c.Progress();
        }
        if (c.rank() == 1) {
          std::this_thread::sleep_for(milliseconds(50));
          return RunOnce(c, Sum({8}, "first"), {1, 2});
        }
        return RunOnce(c, Sum({8}, "second"), {0, 1});
      });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 2 did not arrive at all_reduce 'first'"));
  }
}

TEST(LocalTest, RanksThatWaitForEachOtherEnd) {
  const auto statuses = OnRanks(2, milliseconds(100), [](Communicator& c) {
    // Rank 0 meets 1 in one group; 1 meets 0 in another.
    return RunOnce(
        c, Sum({8}, c.rank() == 0 ? "a" : "b"),
        c.rank() == 0 ? std::vector<int>{0, 1} : std::vector<int>{1, 0});
  });
  for (const absl::Status& status : statuses) EXPECT_FALSE(status.ok());
}

TEST(LocalTest, ARankThatWorksIsWaitedFor) {
  const auto statuses =
      OnRanks(2, milliseconds(200), [](Communicator& c) -> absl::Status {
        for (int i = 0; c.rank() == 1 && i < 30; ++i) {
          std::this_thread::sleep_for(milliseconds(20));
          const absl::Status status = c.Progress();
          if (!status.ok()) return status;
        }
        return RunOnce(c, Sum({8}, "slow"), {0, 1});
      });
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
}

TEST(LocalTest, ARankThatFailsEndsTheOthersAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  const auto statuses =
      OnRanks(8, milliseconds(60000), [](Communicator& c) -> absl::Status {
        if (c.rank() == 5) {
          const absl::Status status = absl::DataLossError("disk on fire");
          c.Fail(status);
          return status;
        }
        return RunOnce(c, Sum({8}, "sum"), {0, 1, 2, 3, 4, 5, 6, 7});
      });
  for (size_t i = 0; i < statuses.size(); ++i) {
    EXPECT_FALSE(statuses[i].ok());
    if (i == 5) continue;
    EXPECT_TRUE(absl::IsAborted(statuses[i])) << statuses[i];
    EXPECT_THAT(std::string(statuses[i].message()),
                HasSubstr("rank 5: disk on fire"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(10000));
}

TEST(LocalTest, DifferentOperationsAreFound) {
  const auto statuses = OnRanks(2, milliseconds(5000), [](Communicator& c) {
    return RunOnce(c, Sum({8 + c.rank()}, "sum"), {0, 1});
  });
  for (const absl::Status& status : statuses) EXPECT_FALSE(status.ok());
  EXPECT_THAT(absl::StrCat(statuses[0].ToString(), statuses[1].ToString()),
              HasSubstr("arrived at all_reduce 'sum' of f32[8], but rank 1 at "
                        "all_reduce 'sum' of f32[9]"));
}

TEST(LocalTest, AgreementTellsTheLowestFailure) {
  const auto statuses = OnRanks(4, milliseconds(5000), [](Communicator& c) {
    return c.Agree(c.rank() < 2
                       ? absl::OkStatus()
                       : absl::NotFoundError(absl::StrCat("file ", c.rank())));
  });
  for (size_t i = 0; i < statuses.size(); ++i) {
    EXPECT_EQ(statuses[i].code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(statuses[i].message(), "rank 2: file 2");
  }
  for (const absl::Status& status :
       OnRanks(3, milliseconds(5000), [](Communicator& c) {
         return c.Agree(absl::NotFoundError(absl::StrCat("file ", c.rank())));
       }))
    EXPECT_EQ(status.message(), "file 0");
  for (const absl::Status& status :
       OnRanks(3, milliseconds(5000),
               [](Communicator& c) { return c.Agree(absl::OkStatus()); }))
    EXPECT_TRUE(status.ok());
}

TEST(LocalTest, WhatIsAgreedIsThatOfTheLastTime) {
  for (const absl::Status& status :
       OnRanks(2, milliseconds(5000), [](Communicator& c) {
         EXPECT_FALSE(c.agreed());
         EXPECT_FALSE(c.Agree(absl::NotFoundError("file")).ok());
         EXPECT_TRUE(c.agreed());
         const absl::Status second = c.Agree(absl::OkStatus());
         EXPECT_FALSE(c.agreed());
         return second;
       }))
    EXPECT_TRUE(status.ok()) << status;
}

TEST(LocalTest, AGroupMustHoldItsMember) {
  const auto communicators = MakeLocalCommunicators(2);
  EXPECT_FALSE(communicators[0]->Prepare(Sum({1}, "x"), {1}).ok());
}

}  // namespace
}  // namespace partita::comm
