// Collectives made of messages, over a transport of mailboxes between threads.
#include "runtime/comm/message.h"

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/comm/test_cases.h"

namespace partita::comm {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

struct Post {
  std::mutex mutex;
  std::map<std::pair<int, int>, std::deque<std::string>> boxes;
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
  absl::StatusOr<Request> Send(const void* data, int64_t bytes,
                               int to) override {
    const std::lock_guard<std::mutex> lock(post_->mutex);
    post_->boxes[{rank_, to}].emplace_back(static_cast<const char*>(data),
                                           static_cast<size_t>(bytes));
    return Keep({nullptr, 0, 0});
  }
  absl::StatusOr<Request> Receive(void* data, int64_t bytes,
                                  int from) override {
    return Keep({static_cast<char*>(data), static_cast<size_t>(bytes), from});
  }
  absl::StatusOr<bool> Test(Request request) override {
    Wanted* wanted = static_cast<Wanted*>(request);
    if (wanted->data == nullptr) return true;
    const std::lock_guard<std::mutex> lock(post_->mutex);
    std::deque<std::string>& box = post_->boxes[{wanted->from, rank_}];
    if (box.empty()) return false;
    EXPECT_EQ(box.front().size(), wanted->bytes);
    std::memcpy(wanted->data, box.front().data(), box.front().size());
    box.pop_front();
    return true;
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
    int from;
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
    int n, const CommOptions& options = {}) {
  const auto post = std::make_shared<Post>();
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int i = 0; i < n; ++i) {
    communicators.push_back(MakeMessageCommunicator(
        std::make_unique<PostTransport>(post, i, n), options));
  }
  return communicators;
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
                          "'gradients' of f32[4] within 150 ms; if it is "
                          "alive and slow, raise --timeout"));
  }
  EXPECT_FALSE(communicators[1]->Progress().ok());
}

}  // namespace
}  // namespace partita::comm
