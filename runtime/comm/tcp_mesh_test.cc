// How a mesh handles frames that the other end should not have sent.
#include "runtime/comm/tcp_mesh.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::comm {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kStream = 3;

struct Frame {
  uint32_t kind = 1;  // a message
  int32_t value = kStream;
  int64_t bytes = 0;
};

Deadline Soon() { return std::chrono::steady_clock::now() + seconds(20); }

// Rank 0 of two; the test is rank 1.
class TcpMeshTest : public testing::Test {
 protected:
  void SetUp() override {
    auto door = Socket::Listen(0);
    ASSERT_TRUE(door.ok()) << door.status();
    auto own = Socket::Connect("127.0.0.1", door->port(), Soon());
    ASSERT_TRUE(own.ok()) << own.status();
    auto other = door->Accept(Soon());
    ASSERT_TRUE(other.ok()) << other.status();
    other_ = *std::move(other);
    Met met;
    met.sockets.resize(2);
    met.sockets[1] = *std::move(own);
    met.names = {"here", "there"};
    mesh_ = std::make_unique<TcpMesh>(0, std::move(met));
  }

  void Say(const Frame& frame) {
    EXPECT_TRUE(other_.Write(&frame, sizeof(frame), Soon()).ok());
  }

  // Waits until the mesh fails, 20 s at most.
  absl::Status Failure() {
    const Deadline end = Soon();
    while (mesh_->Health().ok() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return mesh_->Health();
  }

  std::unique_ptr<TcpMesh> mesh_;
  Socket other_;
};

// Bytes of address space and of resident memory.
std::pair<int64_t, int64_t> Used() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return {all * 4096, resident * 4096};
}

TEST_F(TcpMeshTest, LengthsThatMakeNoSense) {
  Say({1, kStream, (int64_t{1} << 40) + 1});
  const absl::Status status = Failure();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("what rank 1 (there) sends makes no sense"));
}

TEST_F(TcpMeshTest, TextsAreShort) {
  Say({3, 0, (64 << 10) + 1});
  EXPECT_TRUE(absl::IsInternal(Failure())) << mesh_->Health();
}

// Only the header arrives.
TEST_F(TcpMeshTest, AnotherSizeThanExpectedIsRefusedAtOnce) {
  for (const int64_t found : {int64_t{0}, int64_t{9}, int64_t{1} << 39}) {
    SetUp();
    double value = 0;
    const auto request = mesh_->Receive(&value, 8, 1, kStream);
    ASSERT_TRUE(request.ok());
    Say({1, kStream, found});
    const absl::Status status = Failure();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_EQ(std::string(status.message()),
              "expected a message of 8 bytes from rank 1 (there), found one "
              "of " +
                  std::to_string(found));
  }
}

TEST_F(TcpMeshTest, AnotherSizeThanIsExpectedLater) {
  Say({1, kStream, int64_t{1} << 39});
  const char first[100] = "abc";
  EXPECT_TRUE(other_.Write(first, sizeof(first), Soon()).ok());
  // The message begins to arrive before it is expected.
  EXPECT_TRUE(mesh_->Health().ok()) << mesh_->Health();
  double value = 0;
  EXPECT_TRUE(mesh_->Receive(&value, 8, 1, kStream).ok());
  const absl::Status status = Failure();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("expected a message of 8 bytes"),
                    HasSubstr("found one of 549755813888")));
}

// Memory grows with the bytes received, not with the announced size.
TEST_F(TcpMeshTest, AnnouncedBytesTakeNoMemory) {
  const auto before = Used();
  Say({1, kStream, int64_t{1} << 40});
  const std::vector<char> some(100000);
  EXPECT_TRUE(other_.Write(some.data(), some.size(), Soon()).ok());
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(mesh_->Health().ok()) << mesh_->Health();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LT(Used().second, before.second + (64 << 20));
}

// Messages keep their content while their buffer grows.
TEST_F(TcpMeshTest, UnexpectedMessagesArriveWhole) {
  std::vector<int> sent((5 << 20) + 3);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<int>(i * 7);
  const int64_t bytes = static_cast<int64_t>(sent.size() * sizeof(int));
  std::thread sender([&] {
    for (int i = 0; i < 2; ++i) {
      Say({1, kStream, bytes});
      EXPECT_TRUE(
          other_.Write(sent.data(), static_cast<size_t>(bytes), Soon()).ok());
    }
    Say({1, kStream, 0});
    Say({2, 7, 0});
  });
  const absl::Status read = [&]() -> absl::Status {
    for (;;) {
      const auto sign = mesh_->NextSign();
      if (!sign.ok()) return sign.status();
      if (*sign) return absl::OkStatus();
    }
  }();
  sender.join();
  ASSERT_TRUE(read.ok()) << read;
  for (const int64_t expected : {bytes, bytes, int64_t{0}}) {
    std::vector<int> got(sent.size());
    const auto request = mesh_->Receive(got.data(), expected, 1, kStream);
    ASSERT_TRUE(request.ok());
    const auto done = mesh_->Test(*request);
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_TRUE(*done);
    EXPECT_EQ(got == sent, expected != 0);
  }
}

// Messages that arrive while a rank parts are discarded piece by piece.
TEST_F(TcpMeshTest, MessagesAtTheEndAreThrownAway) {
  constexpr int64_t kBytes = 30000001;
  std::thread sender([&] {
    const std::vector<char> some(kBytes);
    // The farewell of rank 0: it is parting.
    Frame farewell;
    EXPECT_TRUE(other_.Read(&farewell, sizeof(farewell), Soon()).ok());
    Say({1, kStream, kBytes});
    EXPECT_TRUE(other_.Write(some.data(), some.size(), Soon()).ok());
    Say({5, 0, 0});
  });
  const absl::Status status = mesh_->Finish(seconds(20));
  sender.join();
  EXPECT_TRUE(status.ok()) << status;
}

constexpr bool kIsSanitized =
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    true;
#else
    false;
#endif
#else
    false;
#endif

TEST_F(TcpMeshTest, MemoryThatIsNotThereIsAFailureOfTheMesh) {
  if (kIsSanitized)
    GTEST_SKIP() << "a sanitizer's address space cannot be limited";
  constexpr int64_t kBytes = 400 << 20;
  std::thread sender([&] {
    const std::vector<char> some(1 << 20);
    Say({1, kStream, kBytes});
    // Ends when the other end fails and closes the connection.
    for (int64_t i = 0; i < kBytes >> 20; ++i)
      if (!other_.Write(some.data(), some.size(), Soon()).ok()) return;
  });
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &old), 0);
  rlimit little = old;
  little.rlim_cur = static_cast<rlim_t>(Used().first + (200 << 20));
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  const absl::Status status = Failure();
  setrlimit(RLIMIT_AS, &old);
  mesh_.reset();
  sender.join();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no memory is left for a message of 419430400 bytes "
                        "from rank 1 (there)"));
}

}  // namespace
}  // namespace partita::comm
