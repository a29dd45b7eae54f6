// Ranks that meet while unrelated programs connect to them or take their
// address.
#include "runtime/comm/rendezvous.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/comm/reception.h"

namespace partita::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

Deadline Soon() { return Clock::now() + seconds(20); }

std::string NewFile() {
  static int number = 0;
  return absl::StrCat(testing::TempDir(), "/meeting-", getpid(), "-", number++);
}

std::future<absl::StatusOr<Met>> Start(
    const std::string& address, int rank, int size,
    milliseconds timeout = milliseconds(20000)) {
  return std::async(std::launch::async,
                    [=] { return Meet({address, rank, size, timeout}); });
}

// Port and nonce, once rank 0 has written them.
std::pair<int, uint64_t> WhereIsIt(const std::string& file) {
  std::string host;
  int port = 0;
  uint64_t nonce = 0;
  const Deadline end = Soon();
  while (!(std::ifstream(file) >> host >> port >> nonce) && Clock::now() < end)
    std::this_thread::sleep_for(milliseconds(1));
  return {port, nonce};
}

// The system picks a connection's local port from a range that may contain the
// requested port, so a connection can reach itself. Trying as many connections
// as there are ports makes this happen; a port that the system once picked is
// in the range.
TEST(RendezvousTest, AConnectionWithItselfIsNone) {
  int port = 0;
  {
    const auto door = Socket::Listen(0);
    ASSERT_TRUE(door.ok());
    const auto one = Socket::Connect("127.0.0.1", door->port(), Soon());
    ASSERT_TRUE(one.ok()) << one.status();
    // This end closes last, which leaves the port free.
    const auto other = door->Accept(Soon());
    ASSERT_TRUE(other.ok());
    port = one->port();
  }
  bool has_met_itself = false;
  for (int i = 0; i < 400000 && !has_met_itself; ++i) {
    const auto found = Socket::Connect("127.0.0.1", port, Soon());
    ASSERT_TRUE(absl::IsUnavailable(found.status())) << found.status();
    has_met_itself = found.status().message() ==
                     absl::StrCat("connecting to 127.0.0.1:", port,
                                  ": nobody listens there");
  }
  EXPECT_TRUE(has_met_itself);
  // The intended listener can still use the port.
  const auto door = Socket::Listen(port);
  EXPECT_TRUE(door.ok()) << door.status();
}

TEST(RendezvousTest, SilentStrangersDoNotHoldUpAMeeting) {
  const std::string file = NewFile();
  const Clock::time_point start = Clock::now();
  auto first = Start("file://" + file, 0, 3);
  const auto [port, nonce] = WhereIsIt(file);
  std::vector<Socket> strangers;
  for (int i = 0; i < 20; ++i) {
    auto one = Socket::Connect("127.0.0.1", port, Soon());
    ASSERT_TRUE(one.ok()) << one.status();
    // Some begin with bytes of a valid hello.
    Hello hello;
    EXPECT_TRUE(one->Write(&hello, static_cast<size_t>(i), Soon()).ok());
    strangers.push_back(*std::move(one));
  }
  auto second = Start("file://" + file, 1, 3);
  auto third = Start("file://" + file, 2, 3);
  for (auto* rank : {&first, &second, &third}) {
    const auto met = rank->get();
    EXPECT_TRUE(met.ok()) << met.status();
  }
  EXPECT_LT(Clock::now() - start, kGreetingTime);
}

// More connections than the door's queue holds.
TEST(RendezvousTest, ManyStrangersNeither) {
  const std::string file = NewFile();
  auto first = Start("file://" + file, 0, 2);
  const int port = WhereIsIt(file).first;
  std::vector<Socket> strangers;
  for (int i = 0; i < 300; ++i) {
    auto one = Socket::Connect("127.0.0.1", port, Soon());
    ASSERT_TRUE(one.ok()) << one.status();
    strangers.push_back(*std::move(one));
  }
  auto second = Start("file://" + file, 1, 2);
  EXPECT_TRUE(second.get().ok());
  EXPECT_TRUE(first.get().ok());
}

// The file names a rank 0 that was killed. Another program now listens at its
// address, accepts data and does not answer.
TEST(RendezvousTest, AFileThatLeadsToSomebodySilentIsReadAgain) {
  const std::string file = NewFile();
  const auto stranger = Socket::Listen(0);
  ASSERT_TRUE(stranger.ok());
  std::ofstream(file) << "127.0.0.1 " << stranger->port() << " 5\n";
  auto second = Start("file://" + file, 1, 2);
  const auto guest = stranger->Accept(Soon());
  ASSERT_TRUE(guest.ok()) << guest.status();
  auto first = Start("file://" + file, 0, 2);
  const auto second_met = second.get();
  EXPECT_TRUE(second_met.ok()) << second_met.status();
  EXPECT_TRUE(first.get().ok());
}

// It sends data first, as most servers do: banners, errors.
TEST(RendezvousTest, WhoAnswersSomethingElseIsNotRankZero) {
  auto stranger = Socket::Listen(0);
  ASSERT_TRUE(stranger.ok());
  auto rank = Start(absl::StrCat("tcp://127.0.0.1:", stranger->port()), 1, 2,
                    milliseconds(500));
  std::vector<Socket> guests;
  const std::string banner(4096, '!');
  for (;;) {
    auto guest = stranger->Accept(Clock::now() + milliseconds(700));
    if (!guest.ok()) break;
    guest->Write(banner.data(), banner.size(), Soon()).IgnoreError();
    guests.push_back(*std::move(guest));
  }
  EXPECT_GT(guests.size(), 1);
  EXPECT_THAT(
      std::string(rank.get().status().message()),
      HasSubstr(absl::StrCat("what answers at 127.0.0.1:", stranger->port(),
                             " is not rank 0 of this program; see "
                             "whether it was started there")));
}

// A valid verdict except for the number of ranks.
TEST(RendezvousTest, AVerdictForAnotherNumberIsNone) {
  auto stranger = Socket::Listen(0);
  ASSERT_TRUE(stranger.ok());
  auto rank = Start(absl::StrCat("tcp://127.0.0.1:", stranger->port()), 1, 2,
                    milliseconds(500));
  const struct {
    uint32_t welcome = kMagic, magic = kMagic;
    int32_t size = 3;
    uint32_t is_ok = 1, bytes = 0;
    char seats[3 * 164] = "";
  } answer;
  std::vector<Socket> guests;
  for (;;) {
    auto guest = stranger->Accept(Clock::now() + milliseconds(700));
    if (!guest.ok()) break;
    guest->Write(&answer, sizeof(answer), Soon()).IgnoreError();
    guests.push_back(*std::move(guest));
  }
  EXPECT_THAT(std::string(rank.get().status().message()),
              HasSubstr("is not rank 0 of this program"));
}

// Rank 1 connects, goes, and connects again before rank 2 does.
TEST(RendezvousTest, WhoHasGoneMayComeAgain) {
  const std::string file = NewFile();
  auto first = Start("file://" + file, 0, 3);
  const auto [port, nonce] = WhereIsIt(file);
  std::vector<Socket> guests;
  for (const int rank : {1, 1, 2}) {
    if (guests.size() == 1) guests[0] = Socket();
    auto guest = Socket::Connect("127.0.0.1", port, Soon());
    ASSERT_TRUE(guest.ok()) << guest.status();
    Hello hello;
    hello.rank = rank;
    hello.size = 3;
    hello.nonce = nonce;
    EXPECT_TRUE(guest->Write(&hello, sizeof(hello), Soon()).ok());
    // Rank 0 takes a welcomed rank before it reads the next.
    uint32_t welcome = 0;
    EXPECT_TRUE(guest->Read(&welcome, sizeof(welcome), Soon()).ok());
    EXPECT_EQ(welcome, kMagic);
    guests.push_back(*std::move(guest));
  }
  const auto met = first.get();
  EXPECT_TRUE(met.ok()) << met.status();
}

}  // namespace
}  // namespace partita::comm
