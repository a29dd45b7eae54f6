// Collectives made of messages, over a transport of mailboxes between threads.
#include "runtime/comm/message.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
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
using testing::HasSubstr;

struct Post {
  std::mutex mutex;
  // By stream, sender and receiver.
  std::map<std::tuple<int, int, int>, std::deque<std::string>> boxes;
  std::map<int, std::deque<Transport::Sign>> signs;  // by receiver
  int sent_signs = 0;
  absl::Status failure;
};

class PostTransport : public Transport {
 public:
  PostTransport(std::shared_ptr<Post> post, int rank, int size)
      : post_(std::move(post)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string Describe(int rank) const override {
    return absl::StrCat("rank ", rank, " (host", rank, ")");
  }
  absl::StatusOr<Request> Send(const void* data, int64_t bytes, int to,
                               Stream stream) override {
    const std::lock_guard<std::mutex> lock(post_->mutex);
    post_->boxes[{static_cast<int>(stream), rank_, to}].emplace_back(
        static_cast<const char*>(data), static_cast<size_t>(bytes));
    return Keep({nullptr, 0, 0, 0});
  }
  absl::StatusOr<Request> Receive(void* data, int64_t bytes, int from,
                                  Stream stream) override {
    return Keep({static_cast<char*>(data), static_cast<size_t>(bytes), from,
                 static_cast<int>(stream)});
  }
  absl::StatusOr<bool> Test(Request request) override {
    Wanted* wanted = static_cast<Wanted*>(request);
    if (wanted->data == nullptr) return true;
    const std::lock_guard<std::mutex> lock(post_->mutex);
    std::deque<std::string>& box =
        post_->boxes[{wanted->stream, wanted->from, rank_}];
    if (box.empty()) return false;
    EXPECT_EQ(box.front().size(), wanted->bytes);
    std::memcpy(wanted->data, box.front().data(), box.front().size());
    box.pop_front();
    return true;
  }
  absl::Status SendSign(int number, int to) override {
    const std::lock_guard<std::mutex> lock(post_->mutex);
    post_->signs[to].push_back({number, rank_});
    ++post_->sent_signs;
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<Sign>> NextSign() override {
    const std::lock_guard<std::mutex> lock(post_->mutex);
    std::deque<Sign>& box = post_->signs[rank_];
    if (box.empty()) return std::optional<Sign>();
    const Sign sign = box.front();
    box.pop_front();
    return std::optional<Sign>(sign);
  }
  absl::Status Health() override {
    const std::lock_guard<std::mutex> lock(post_->mutex);
    return post_->failure;
  }
  void Fail(const absl::Status& status) override {
    const std::lock_guard<std::mutex> lock(post_->mutex);
    if (post_->failure.ok()) post_->failure = status;
  }

 private:
  struct Wanted {
    char* data;
    size_t bytes;
    int from, stream;
  };
  Request Keep(const Wanted& wanted) {
    wanted_.push_back(std::make_unique<Wanted>(wanted));
    return wanted_.back().get();
  }

  std::vector<std::unique_ptr<Wanted>> wanted_;
  const std::shared_ptr<Post> post_;
  const int rank_;
  const int size_;
};

std::vector<std::unique_ptr<Communicator>> MakePost(
    int n, const CommOptions& options = {},
    const std::shared_ptr<Post>& post = std::make_shared<Post>()) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int i = 0; i < n; ++i) {
    communicators.push_back(MakeMessageCommunicator(
        std::make_unique<PostTransport>(post, i, n), options));
  }
  return communicators;
}

// Status of `body` on each of n ranks, which begin together.
template <typename Body>
std::vector<absl::Status> OnRanks(int n, milliseconds timeout,
                                  const Body& body) {
  const auto communicators = MakePost(n, {timeout});
  std::vector<absl::Status> statuses(static_cast<size_t>(n));
  std::vector<std::thread> threads;
  std::atomic<int> missing(n);
  for (size_t i = 0; i < statuses.size(); ++i)
    threads.emplace_back([&, i] {
      for (--missing; missing > 0;) std::this_thread::yield();
      statuses[i] = body(*communicators[i]);
    });
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

absl::Status SumOnce(Communicator& communicator, const std::string& name,
                     const std::vector<int>& ranks, int timeout_factor = 1) {
  Operation op;
  op.input_shape = op.output_shape = {4};
  op.name = name;
  op.timeout_factor = timeout_factor;
  auto collective = communicator.Prepare(op, ranks);
  if (!collective.ok()) return collective.status();
  std::vector<float> values(4, 1);
  return communicator.Run(**collective, values.data(), values.data());
}

// Works in steps of 20 ms.
absl::Status WorkFor(Communicator& communicator, milliseconds time) {
  for (milliseconds at{0}; at < time; at += milliseconds(20)) {
    std::this_thread::sleep_for(milliseconds(20));
    const absl::Status status = communicator.Progress();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

TEST(MessageTest, RowsTravelAndReturn) {
  CheckRows([](int n) { return MakePost(n); });
}

TEST(MessageTest, Transfers) {
  CheckTransfers(
      [](int n, milliseconds timeout) { return MakePost(n, {timeout}); });
}

TEST(MessageTest, StartedOperations) {
  CheckStarted(
      [](int n, milliseconds timeout) { return MakePost(n, {timeout}); });
}

TEST(MessageTest, AllKindsEqualTheReference) {
  CheckAgainstReference([](int n) { return MakePost(n); });
}

TEST(MessageTest, BigReductionsHaveTheSameBitsEverywhere) {
  Operation op;
  op.input_shape = op.output_shape = {50021};
  std::vector<std::string> inputs(3);
  uint32_t state = 1;
  for (std::string& input : inputs) {
    for (int i = 0; i < 50021; ++i) {
      state = state * 1664525 + 1013904223;
      const float value = static_cast<float>(state) * 1e-3f;
      input.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  const auto outputs = RunOnThreads(MakePost(3), op, inputs);
  EXPECT_EQ(outputs[0] == outputs[1] && outputs[0] == outputs[2], true);
}

TEST(MessageTest, ARankThatDoesNotComeIsNamed) {
  const auto communicators = MakePost(3, {milliseconds(150)});
  std::vector<absl::Status> statuses(3);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i) {
    if (i == 1) continue;
    threads.emplace_back([&, i] {
      Operation op;
      op.input_shape = op.output_shape = {4};
      op.name = "gradients";
      auto collective = communicators[i]->Prepare(op, {0, 1, 2});
      std::vector<float> values(4, 1);
      statuses[i] =
          communicators[i]->Run(**collective, values.data(), values.data());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 3; i += 2) {
    EXPECT_THAT(std::string(statuses[i].message()),
                HasSubstr("rank 1 (host1) did not arrive at all_reduce "
                          "'gradients' of f32[4] within 150 ms and made no "
                          "progress; if it is alive and slow, raise "
                          "--timeout"));
  }
  EXPECT_FALSE(communicators[1]->Progress().ok());
}

// Longer than a busy machine keeps a thread from running.
constexpr milliseconds kTimeout(1500);

TEST(MessageTest, ARankThatWorksIsWaitedFor) {
  const auto statuses =
      OnRanks(3, kTimeout, [](Communicator& c) -> absl::Status {
        if (c.rank() == 1) {
          const absl::Status status = WorkFor(c, 2 * kTimeout);
          if (!status.ok()) return status;
        }
        return SumOnce(c, "slow", {0, 1, 2});
      });
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
}

// Rank 0 waits for 1, 1 for 2, and 2 for 3, which works.
TEST(MessageTest, WhoWaitsForARankThatWorksIsWaitedFor) {
  const auto statuses =
      OnRanks(4, kTimeout, [](Communicator& c) -> absl::Status {
        if (c.rank() == 3) {
          const absl::Status status = WorkFor(c, 2 * kTimeout);
          if (!status.ok()) return status;
        }
        for (int other = 3; other > 0; --other) {
          if (c.rank() != other && c.rank() != other - 1) continue;
          const absl::Status status = SumOnce(c, "pair", {other - 1, other});
          if (!status.ok()) return status;
        }
        return absl::OkStatus();
      });
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
}

// Rank 0 waits for 1, and 1 for 2, which stalls. Rank 1 waits `timeout_factor`
// times longer.
std::vector<absl::Status> StallTheThird(int timeout_factor) {
  return OnRanks(3, milliseconds(1500), [&](Communicator& c) -> absl::Status {
    if (c.rank() == 2) {
      std::this_thread::sleep_for(milliseconds(5000));
      return c.Progress();
    }
    return c.rank() == 0 ? SumOnce(c, "second", {0, 1})
                         : SumOnce(c, "first", {1, 2}, timeout_factor);
  });
}

TEST(MessageTest, WhoWaitsIsNotBlamed) {
  for (const absl::Status& status : StallTheThird(1)) {
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("rank 2 (host2) did not arrive at all_reduce 'first' "
                  "of f32[4] within 1500 ms and made no progress; if "));
  }
}

TEST(MessageTest, LongerTimeoutIsNotReported) {
  for (const absl::Status& status : StallTheThird(10)) {
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("rank 1 (host1) did not arrive at all_reduce 'second' of "
                  "f32[4] within 1500 ms and made no progress; rank 1 (host1) "
                  "itself waits for rank 2 (host2); if it is"));
  }
}

// 0 waits for 1, 1 for 2, 2 for 0. Rank 0 also waits for 3, which works; this
// must not keep them alive.
TEST(MessageTest, RanksThatWaitForEachOtherEnd) {
  const auto begin = std::chrono::steady_clock::now();
  const auto statuses =
      OnRanks(4, milliseconds(200), [](Communicator& c) -> absl::Status {
        if (c.rank() == 0) return SumOnce(c, "a", {0, 1, 3});
        if (c.rank() == 1) return SumOnce(c, "b", {1, 2});
        if (c.rank() == 2) return SumOnce(c, "c", {2, 0});
        return WorkFor(c, milliseconds(20000));
      });
  for (const absl::Status& status : statuses) EXPECT_FALSE(status.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(10000));
}

TEST(MessageTest, RanksThatKeepUpSendNoSigns) {
  const auto post = std::make_shared<Post>();
  const auto communicators = MakePost(2, {milliseconds(60000)}, post);
  std::vector<std::thread> threads;
  for (const auto& communicator : communicators) {
    threads.emplace_back([&c = *communicator] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(SumOnce(c, "sum", {0, 1}).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(post->sent_signs, 0);
}

}  // namespace
}  // namespace partita::comm
