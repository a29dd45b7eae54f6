// Ranks that meet at an address. They are threads here, which makes no
// difference to their connections.
#include "runtime/comm/tcp_world.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/comm/rendezvous.h"
#include "runtime/comm/row_cases.h"
#include "runtime/comm/started_cases.h"
#include "runtime/comm/test_cases.h"

namespace partita::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

using Worlds = std::vector<absl::StatusOr<std::unique_ptr<TcpWorld>>>;

// A file that does not exist yet.
std::string NewAddress() {
  static int number = 0;
  return absl::StrCat("file://", testing::TempDir(), "/meet-", getpid(), "-",
                      number++);
}

Launch RankOf(int rank, int size, const std::string& address) {
  Launch launch;
  launch.launcher = "torchrun";
  launch.rank = rank;
  launch.size = size;
  launch.meet_at = address;
  return launch;
}

Worlds StartAll(const std::vector<Launch>& launches,
                milliseconds timeout = milliseconds(20000)) {
  Worlds worlds(launches.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < launches.size(); ++i)
    threads.emplace_back(
        [&, i] { worlds[i] = TcpWorld::Start(launches[i], timeout); });
  for (std::thread& thread : threads) thread.join();
  return worlds;
}

Worlds StartRanks(int n) {
  const std::string address = NewAddress();
  std::vector<Launch> launches;
  for (int rank = 0; rank < n; ++rank)
    launches.push_back(RankOf(rank, n, address));
  return StartAll(launches);
}

// Communicators that keep their worlds alive.
class Ranks {
 public:
  std::vector<std::unique_ptr<Communicator>> Make(
      int n, milliseconds timeout = milliseconds(20000)) {
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (auto& world : StartRanks(n)) {
      EXPECT_TRUE(world.ok()) << world.status();
      if (!world.ok()) continue;
      communicators.push_back((*world)->MakeCommunicator({timeout}));
      worlds_.push_back(*std::move(world));
    }
    return communicators;
  }

 private:
  std::vector<std::unique_ptr<TcpWorld>> worlds_;
};

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

absl::Status SumOnce(Communicator& communicator, int64_t count) {
  Operation op;
  op.input_shape = op.output_shape = {count};
  op.name = "sum";
  std::vector<int> ranks;
  for (int rank = 0; rank < communicator.size(); ++rank) ranks.push_back(rank);
  auto collective = communicator.Prepare(op, ranks);
  if (!collective.ok()) return collective.status();
  std::vector<float> values(static_cast<size_t>(count), 1);
  const absl::Status status =
      communicator.Run(**collective, values.data(), values.data());
  if (!status.ok()) return status;
  for (const float value : values)
    if (value != static_cast<float>(communicator.size()))
      return absl::InternalError("wrong sum");
  return absl::OkStatus();
}

TEST(TcpWorldTest, AllKindsEqualTheReference) {
  Ranks ranks;
  CheckAgainstReference([&](int n) { return ranks.Make(n); });
}

TEST(TcpWorldTest, RowsTravelAndReturn) {
  Ranks ranks;
  CheckRows([&](int n) { return ranks.Make(n); });
}

TEST(TcpWorldTest, Transfers) {
  Ranks ranks;
  CheckTransfers(
      [&](int n, milliseconds timeout) { return ranks.Make(n, timeout); });
}

TEST(TcpWorldTest, StartedOperations) {
  Ranks ranks;
  CheckStarted(
      [&](int n, milliseconds timeout) { return ranks.Make(n, timeout); });
}

// More data than connections buffer, and an orderly end.
TEST(TcpWorldTest, BigTensorsAndTheEnd) {
  Worlds worlds = StartRanks(3);
  std::vector<absl::Status> statuses(3);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      ASSERT_TRUE(worlds[i].ok()) << worlds[i].status();
      {
        const auto communicator = (*worlds[i])->MakeCommunicator({});
        statuses[i] = SumOnce(*communicator, 5000003);
      }
      statuses[i].Update((*worlds[i])->Finish(milliseconds(20000)));
    });
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
}

TEST(TcpWorldTest, ARankThatDoesNotComeIsNamedByAll) {
  const std::string address = NewAddress();
  const Worlds worlds = StartAll(
      {RankOf(0, 4, address), RankOf(1, 4, address), RankOf(3, 4, address)},
      milliseconds(300));
  for (const auto& world : worlds)
    EXPECT_THAT(MessageOf(world.status()),
                HasSubstr(absl::StrCat("rank 2 of 4 did not come to ", address,
                                       " within 0.3 s; see whether")));
}

TEST(TcpWorldTest, WithoutRankZeroNobodyMeets) {
  const std::string address = NewAddress();
  const Worlds worlds = StartAll({RankOf(1, 2, address)}, milliseconds(200));
  EXPECT_THAT(MessageOf(worlds[0].status()),
              AllOf(HasSubstr(absl::StrCat("rank 0 was not found at ", address,
                                           " within 0.2 s: there is no file ")),
                    HasSubstr("see whether it was started there")));
}

TEST(TcpWorldTest, TwoOfTheSameRankAreRefused) {
  const std::string address = NewAddress();
  const Worlds worlds = StartAll(
      {RankOf(0, 3, address), RankOf(1, 3, address), RankOf(1, 3, address)},
      milliseconds(5000));
  for (const auto& world : worlds)
    EXPECT_THAT(MessageOf(world.status()),
                HasSubstr("two processes say that they are rank 1: "));
}

TEST(TcpWorldTest, AnotherNumberOfRanksIsRefused) {
  const std::string address = NewAddress();
  const Worlds worlds = StartAll({RankOf(0, 2, address), RankOf(1, 3, address)},
                                 milliseconds(5000));
  for (const auto& world : worlds)
    EXPECT_THAT(MessageOf(world.status()),
                AllOf(HasSubstr("was started as one of 2 processes, found rank "
                                "1 of 3 ("),
                      HasSubstr("the same WORLD_SIZE")));
}

// Leftovers of an earlier job, and connections from unrelated programs.
TEST(TcpWorldTest, OldFilesAndStrangersDoNotMatter) {
  const std::string address = NewAddress();
  auto stranger = Socket::Listen(0);
  ASSERT_TRUE(stranger.ok());
  std::ofstream(address.substr(7))
      << "127.0.0.1 " << stranger->port() << " 5\n";
  std::thread guest([&] {
    auto left = stranger->Accept(std::chrono::steady_clock::now() +
                                 std::chrono::seconds(20));
    // Rank 1 is waiting: rank 0 may start.
    EXPECT_TRUE(left.ok());
    *stranger = Socket();
  });
  absl::StatusOr<std::unique_ptr<TcpWorld>> second =
      absl::UnknownError("not started");
  std::thread rank_1([&] {
    second = TcpWorld::Start(RankOf(1, 2, address), milliseconds(20000));
  });
  guest.join();
  const auto first =
      TcpWorld::Start(RankOf(0, 2, address), milliseconds(20000));
  rank_1.join();
  EXPECT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_NE(access(address.substr(7).c_str(), F_OK), 0);
}

TEST(TcpWorldTest, AnAddressOfAnotherFormIsRefused) {
  for (const char* address : {"tcp://node07", "tcp://:5", "file://", "node07:5",
                              "tcp://node07:70000"})
    EXPECT_THAT(
        MessageOf(
            TcpWorld::Start(RankOf(0, 2, address), milliseconds(100)).status()),
        HasSubstr(absl::StrCat("expected tcp://HOST:PORT or "
                               "file:///PATH as the address where "
                               "processes meet, found '",
                               address, "'")));
}

TEST(TcpWorldTest, APortThatIsTakenIsNamed) {
  const auto taken = Socket::Listen(0);
  ASSERT_TRUE(taken.ok());
  const std::string address = absl::StrCat("tcp://127.0.0.1:", taken->port());
  EXPECT_THAT(
      MessageOf(
          TcpWorld::Start(RankOf(0, 2, address), milliseconds(100)).status()),
      AllOf(HasSubstr(address), HasSubstr("choose another port")));
}

// The world of rank 1 disappears without a farewell, as when it is killed.
TEST(TcpWorldTest, ARankThatEndsIsNamed) {
  Worlds worlds = StartRanks(3);
  for (const auto& world : worlds) ASSERT_TRUE(world.ok()) << world.status();
  worlds[1] = absl::CancelledError();
  for (const size_t i : {0, 2}) {
    const auto communicator = (*worlds[i])->MakeCommunicator({});
    EXPECT_THAT(MessageOf(SumOnce(*communicator, 4)),
                AllOf(HasSubstr("rank 1 ("),
                      HasSubstr("has ended: its connection was closed")));
  }
}

TEST(TcpWorldTest, AFailureReachesTheOthers) {
  Worlds worlds = StartRanks(2);
  for (const auto& world : worlds) ASSERT_TRUE(world.ok()) << world.status();
  const auto first = (*worlds[0])->MakeCommunicator({});
  const auto second = (*worlds[1])->MakeCommunicator({});
  second->Fail(absl::DataLossError("the disk is gone"));
  const absl::Status status = SumOnce(*first, 4);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(MessageOf(status),
              testing::MatchesRegex(".*rank 1 .*: the disk is gone.*"));
}

// Rank 1 ends, then rank 2 because of it, before rank 0 has checked.
TEST(TcpWorldTest, WhoEndsBecauseOfAnotherSaysSo) {
  Worlds worlds = StartRanks(3);
  for (const auto& world : worlds) ASSERT_TRUE(world.ok()) << world.status();
  worlds[1] = absl::CancelledError();
  {
    const auto third = (*worlds[2])->MakeCommunicator({});
    const absl::Status status = SumOnce(*third, 4);
    EXPECT_FALSE(status.ok());
    third->Fail(status);
  }
  worlds[2] = absl::CancelledError();
  const auto first = (*worlds[0])->MakeCommunicator({});
  EXPECT_THAT(MessageOf(SumOnce(*first, 4)), HasSubstr("rank 1 ("));
}

TEST(TcpWorldTest, WhoDoesNotComeToTheEndIsNamed) {
  Worlds worlds = StartRanks(2);
  for (const auto& world : worlds) ASSERT_TRUE(world.ok()) << world.status();
  EXPECT_THAT(MessageOf((*worlds[0])->Finish(milliseconds(100))),
              AllOf(HasSubstr("rank 1 ("),
                    HasSubstr("did not come to the end within 100 ms")));
}

}  // namespace
}  // namespace partita::comm
