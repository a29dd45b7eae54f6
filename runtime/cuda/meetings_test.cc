// Ranks in threads arrive and wait, and learn of ranks that do not arrive.
#include "runtime/cuda/meetings.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/comm/local.h"

namespace partita::cuda {
namespace {

using Lane = Meetings::Lane;
using Posting = Meetings::Posting;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Posting At(const std::string& operation, char* memory = nullptr) {
  Posting posting;
  posting.input = posting.output = memory;
  posting.fingerprint = std::hash<std::string>()(operation);
  posting.description = std::make_shared<const std::string>(operation);
  return posting;
}

std::string TextOf(const absl::Status& status) {
  return std::string(status.message());
}

class MeetingsTest : public ::testing::Test {
 protected:
  explicit MeetingsTest(int ranks = 3) {
    comm::CommOptions options;
    options.timeout = kTimeout;
    bases_ = comm::MakeLocalCommunicators(ranks, options);
    meetings_ = std::make_unique<Meetings>(ranks, kTimeout);
    for (const auto& base : bases_) meetings_->Join(*base);
  }
  // Runs `body` for each rank on its own thread.
  std::vector<absl::Status> OnEach(
      const std::function<absl::Status(int rank)>& body) {
    std::vector<absl::Status> statuses(bases_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < bases_.size(); ++rank)
      threads.emplace_back(
          [&, rank] { statuses[rank] = body(static_cast<int>(rank)); });
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
  comm::Communicator& base(int rank) {
    return *bases_[static_cast<size_t>(rank)];
  }
  // Arrives and waits.
  absl::Status Meet(int rank, const std::vector<int>& ranks,
                    const std::string& operation, Lane lane = Lane::kInPlace) {
    auto meeting = meetings_->Arrive(
        base(rank), lane, ranks, At(operation),
        [](const std::vector<Posting>&) { return std::shared_ptr<void>(); });
    if (!meeting.ok()) return meeting.status();
    return meetings_->Await(base(rank), **meeting).status();
  }

  static constexpr std::chrono::milliseconds kTimeout{1500};
  std::vector<std::unique_ptr<comm::Communicator>> bases_;
  std::unique_ptr<Meetings> meetings_;
};

// A sum and a product of all members' values, many times. The last to arrive
// varies.
TEST_F(MeetingsTest, WhoComesLastDoesItForAll) {
  constexpr int kTimes = 500;
  std::vector<int> held(kTimes, 0);
  const auto statuses = OnEach([&](int rank) -> absl::Status {
    for (int i = 0; i < kTimes; ++i) {
      char memory = static_cast<char>(rank + 1);
      const auto hold = [&](const std::vector<Posting>& postings)
          -> absl::StatusOr<std::shared_ptr<void>> {
        ++held[static_cast<size_t>(i)];
        int sum = 0;
        for (const Posting& one : postings) sum += *one.input;
        for (const Posting& one : postings)
          *one.output = static_cast<char>(sum);
        return std::make_shared<int>(i);
      };
      const auto meeting = meetings_->Arrive(
          base(rank), Lane::kInPlace, {0, 1, 2}, At("sum", &memory), hold);
      if (!meeting.ok()) return meeting.status();
      const auto result = meetings_->Await(base(rank), **meeting);
      if (!result.ok()) return result.status();
      EXPECT_EQ(*static_cast<int*>(result->get()), i);
      EXPECT_EQ(memory, 6);
    }
    return absl::OkStatus();
  });
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(held, std::vector<int>(kTimes, 1));
}

// One thread is enough, because arriving does not wait. Lanes and groups are
// ordered separately.
TEST_F(MeetingsTest, ComingWaitsForNobody) {
  std::vector<std::string> order;
  const auto come = [&](int rank, Lane lane, std::vector<int> ranks,
                        const std::string& operation) {
    return std::move(meetings_->Arrive(base(rank), lane, ranks, At(operation),
                                       [&](const std::vector<Posting>&) {
                                         order.push_back(operation);
                                         return std::make_shared<int>(0);
                                       }))
        .value();
  };
  const auto a = come(0, Lane::kBeside, {0, 1}, "a");
  const auto b = come(0, Lane::kBeside, {0, 1}, "b");
  const auto c = come(0, Lane::kTransfers, {0, 1}, "c");
  const auto d = come(0, Lane::kBeside, {0, 2}, "d");
  come(2, Lane::kBeside, {0, 2}, "d");
  come(1, Lane::kTransfers, {0, 1}, "c");
  come(1, Lane::kBeside, {0, 1}, "a");
  come(1, Lane::kBeside, {0, 1}, "b");
  EXPECT_EQ(order, (std::vector<std::string>{"d", "c", "a", "b"}));
  for (const auto& meeting : {b, a, d, c})
    EXPECT_TRUE(meetings_->Await(base(0), *meeting).ok());
}

TEST_F(MeetingsTest, AnotherOperationIsAnErrorOfAll) {
  const auto statuses = OnEach([&](int rank) {
    return Meet(rank, {0, 1, 2},
                rank == 2 ? "all_gather 'b'" : "all_reduce 'a'");
  });
  int internal = 0;
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(TextOf(status), AllOf(HasSubstr("all_gather 'b'"),
                                      HasSubstr("all_reduce 'a'")));
    internal += absl::IsInternal(status) ? 1 : 0;
  }
  EXPECT_EQ(internal, 1);
}

// Rank 0 waits for rank 1, which waits for rank 2, which never arrives.
TEST_F(MeetingsTest, WhoDoesNotComeIsNamed) {
  const auto statuses = OnEach([&](int rank) {
    if (rank == 2) return absl::OkStatus();
    return rank == 0 ? Meet(0, {0, 1}, "all_reduce 'a'")
                     : Meet(1, {1, 2}, "all_reduce 'b'");
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(statuses[1])) << statuses[1];
  EXPECT_THAT(TextOf(statuses[1]),
              AllOf(HasSubstr("rank 2 did not arrive at all_reduce 'b' within "
                              "1500 ms and made no progress (rank 1 waited)"),
                    HasSubstr("raise --timeout")));
  EXPECT_TRUE(absl::IsAborted(statuses[0])) << statuses[0];
  EXPECT_THAT(TextOf(statuses[0]), HasSubstr("rank 2 did not arrive"));
  EXPECT_FALSE(Meet(2, {1, 2}, "all_reduce 'b'").ok());
}

// Rank 0 reports progress for longer than the timeout, then arrives.
TEST_F(MeetingsTest, WhoMakesProgressIsWaitedFor) {
  const auto statuses = OnEach([&](int rank) {
    for (int i = 0; rank == 0 && i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      EXPECT_TRUE(base(0).Progress().ok());
    }
    return Meet(rank, {0, 1, 2}, "all_reduce 'a'");
  });
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
}

// Ranks 0 and 1 wait for each other at different operations. The message says
// where the other rank waits.
TEST_F(MeetingsTest, WhoWaitInACircleAreNamed) {
  const auto statuses = OnEach([&](int rank) {
    if (rank == 2) return absl::OkStatus();
    return rank == 0 ? Meet(0, {0, 1}, "all_reduce 'a'")
                     : Meet(1, {0, 1}, "transfer 'b'", Lane::kTransfers);
  });
  const bool first = absl::IsDeadlineExceeded(statuses[0]);
  EXPECT_TRUE(first || absl::IsDeadlineExceeded(statuses[1]));
  const std::string text = TextOf(statuses[first ? 0 : 1]);
  EXPECT_THAT(text, HasSubstr(first ? "; rank 1 waits at transfer 'b'"
                                    : "; rank 0 waits at all_reduce 'a'"));
}

TEST_F(MeetingsTest, WhatHoldingFailsAtIsAnErrorOfAll) {
  const auto statuses = OnEach([&](int rank) {
    const auto meeting = meetings_->Arrive(
        base(rank), Lane::kInPlace, {0, 1, 2}, At("all_reduce 'a'"),
        [](const std::vector<Posting>&)
            -> absl::StatusOr<std::shared_ptr<void>> {
          return absl::ResourceExhaustedError("no events are left");
        });
    if (!meeting.ok()) return meeting.status();
    return meetings_->Await(base(rank), **meeting).status();
  });
  int own = 0;
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(TextOf(status), HasSubstr("no events are left"));
    own += absl::IsResourceExhausted(status) ? 1 : 0;
  }
  EXPECT_EQ(own, 1);
}

// The driver keeps rank 2 for longer than the timeout. Of the ranks that wait
// for it, one stays and the others leave.
TEST_F(MeetingsTest, WhoHoldsAndDoesNotComeBackIsNamed) {
  const std::vector<int> all = {0, 1, 2};
  std::atomic<int> came{0}, ended{0};
  const auto begin = std::chrono::steady_clock::now();
  const auto until = [](const std::atomic<int>& count) {
    while (count < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto statuses = OnEach([&](int rank) {
    if (rank == 2) until(came);
    const auto meeting =
        meetings_->Arrive(base(rank), Lane::kInPlace, all, At("all_reduce 'a'"),
                          [&](const std::vector<Posting>&) {
                            EXPECT_TRUE(meetings_->Check(2).ok());
                            until(ended);
                            // The other members' buffers may be gone.
                            EXPECT_FALSE(meetings_->Check(2).ok());
                            return std::make_shared<int>(0);
                          });
    if (rank == 2) return meeting.status();
    ++came;
    absl::Status status;
    if (rank == 0) {
      status = meetings_->Await(base(0), **meeting).status();
    } else {
      until(came);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      status = meetings_->Quit(1, **meeting).status();
      meetings_->Leave(1);
    }
    ++ended;
    return status;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4 * kTimeout);
  for (const int rank : {0, 1}) {
    const absl::Status& status = statuses[static_cast<size_t>(rank)];
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(
        TextOf(status),
        AllOf(HasSubstr("rank 2 came last to all_reduce 'a' and did not get it "
                        "to the GPU within 1500 ms (rank " +
                        std::to_string(rank) + " waited)"),
              HasSubstr("raise --timeout")));
  }
}

// Quitting a meeting that was run returns its result. A meeting that was not
// run never will be.
TEST_F(MeetingsTest, WhoQuitsAMeeting) {
  const auto come = [&](int rank, const std::vector<int>& ranks) {
    return *meetings_->Arrive(
        base(rank), Lane::kTransfers, ranks, At("transfer 'a'"),
        [](const std::vector<Posting>&) { return std::make_shared<int>(7); });
  };
  const auto held = come(0, {0, 1});
  come(1, {0, 1});
  const auto result = meetings_->Quit(0, *held);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*static_cast<int*>(result->get()), 7);
  const auto open = come(2, {2, 1});
  EXPECT_THAT(
      TextOf(meetings_->Quit(2, *open).status()),
      HasSubstr("rank 2 left before all ranks arrived at transfer 'a'"));
  EXPECT_FALSE(Meet(1, {2, 1}, "transfer 'a'", Lane::kTransfers).ok());
}

TEST_F(MeetingsTest, WhoLeavesEndsWhatOthersWaitFor) {
  const auto begin = std::chrono::steady_clock::now();
  const auto statuses = OnEach([&](int rank) {
    if (rank == 1) return Meet(1, {0, 1, 2}, "all_reduce 'a'");
    if (rank == 0) {
      // Rank 0 arrives and does not wait.
      EXPECT_TRUE(meetings_
                      ->Arrive(base(0), Lane::kInPlace, {0, 1, 2},
                               At("all_reduce 'a'"),
                               [](const std::vector<Posting>&) {
                                 ADD_FAILURE() << "rank 2 never came";
                                 return std::shared_ptr<void>();
                               })
                      .ok());
      meetings_->Leave(0);
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(TextOf(statuses[1]), HasSubstr("rank 0 left"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kTimeout);
}

TEST_F(MeetingsTest, ARankThatFailsElsewhereEndsWaits) {
  const auto statuses = OnEach([&](int rank) {
    if (rank < 2) return Meet(rank, {0, 1, 2}, "all_reduce 'a'");
    bases_[2]->Fail(absl::DataLossError("its file is cut off"));
    return absl::OkStatus();
  });
  for (const int rank : {0, 1})
    EXPECT_THAT(TextOf(statuses[static_cast<size_t>(rank)]),
                AllOf(HasSubstr("rank 2: its file is cut off"),
                      Not(HasSubstr("did not arrive"))));
}

}  // namespace
}  // namespace partita::cuda
