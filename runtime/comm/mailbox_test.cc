// Messages match expectations in order, whichever arrive first; memory is
// reused.
#include "runtime/comm/mailbox.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/comm/buffer_pool.h"

namespace partita::comm {
namespace {

using std::chrono::milliseconds;
using testing::Eq;
using testing::Optional;

void Send(Mailbox& mailbox, uint64_t fingerprint, std::string data) {
  mailbox.Send(fingerprint, "message " + std::to_string(fingerprint),
               data.data(), static_cast<int64_t>(data.size()));
}

TEST(MailboxTest, WhatIsExpectedGoesStraightToItsTarget) {
  Mailbox mailbox;
  std::string first = "....", second = "....", third = "....";
  mailbox.Expect(1, first.data());
  mailbox.Expect(2, second.data());
  Send(mailbox, 1, "once");
  Send(mailbox, 2, "more");
  EXPECT_EQ(first, "once");
  EXPECT_EQ(second, "more");
  // Without an expectation, the message waits in the mailbox.
  Send(mailbox, 1, "last");
  mailbox.Expect(1, third.data());
  EXPECT_EQ(third, "....");
  EXPECT_THAT(mailbox.Await(third.data(), milliseconds(0)), Optional(Eq("")));
  EXPECT_EQ(third, "last");
  EXPECT_THAT(mailbox.Await(first.data(), milliseconds(0)), Optional(Eq("")));
  EXPECT_THAT(mailbox.Await(second.data(), milliseconds(0)), Optional(Eq("")));
}

TEST(MailboxTest, NothingCame) {
  Mailbox mailbox;
  std::string target = "....";
  mailbox.Expect(1, target.data());
  EXPECT_EQ(mailbox.Await(target.data(), milliseconds(1)), std::nullopt);
  Send(mailbox, 1, "late");
  EXPECT_THAT(mailbox.Await(target.data(), milliseconds(1)), Optional(Eq("")));
  EXPECT_EQ(target, "late");
}

TEST(MailboxTest, AnotherMessageIsNamedAndNotCopied) {
  for (const bool early : {false, true}) {
    Mailbox mailbox;
    std::string target = "....", next = "....";
    if (early) Send(mailbox, 2, "gradient");
    mailbox.Expect(1, target.data());
    mailbox.Expect(3, next.data());
    if (!early) Send(mailbox, 2, "gradient");
    Send(mailbox, 3, "next");
    EXPECT_THAT(mailbox.Await(target.data(), milliseconds(1)),
                Optional(Eq("message 2")));
    EXPECT_EQ(target, "....");
    EXPECT_THAT(mailbox.Await(next.data(), milliseconds(1)), Optional(Eq("")));
    EXPECT_EQ(next, "next");
  }
}

TEST(MailboxTest, WhatIsForgottenIsNotWrittenTo) {
  Mailbox mailbox;
  std::string target = "....", other = "....";
  mailbox.Expect(1, target.data());
  mailbox.Forget();
  Send(mailbox, 1, "data");
  EXPECT_EQ(target, "....");
  EXPECT_EQ(mailbox.Await(target.data(), milliseconds(0)), std::nullopt);
  mailbox.Expect(1, other.data());
  EXPECT_THAT(mailbox.Await(other.data(), milliseconds(0)), Optional(Eq("")));
  EXPECT_EQ(other, "data");
}

TEST(MailboxTest, ThreadsMeetInAnyOrder) {
  constexpr int kMessages = 2000, kWindow = 3;
  Mailbox mailbox;
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i)
      Send(mailbox, static_cast<uint64_t>(i),
           std::string(static_cast<size_t>(i % 97 + 1),
                       static_cast<char>('a' + i % 26)));
  });
  std::vector<std::string> targets(kWindow, std::string(97, '.'));
  for (int i = 0; i < kMessages + kWindow; ++i) {
    std::string& target = targets[static_cast<size_t>(i % kWindow)];
    if (const int came = i - kWindow; came >= 0) {
      std::optional<std::string> wrong;
      while (!wrong) wrong = mailbox.Await(target.data(), milliseconds(20));
      ASSERT_EQ(*wrong, "");
      ASSERT_EQ(target.substr(0, static_cast<size_t>(came % 97 + 1)),
                std::string(static_cast<size_t>(came % 97 + 1),
                            static_cast<char>('a' + came % 26)));
    }
    if (i < kMessages) mailbox.Expect(static_cast<uint64_t>(i), target.data());
  }
  sender.join();
}

TEST(BufferPoolTest, BuffersServeMessagesOfAboutTheirSize) {
  BufferPool pool;
  Buffer small = pool.Take(1000), large = pool.Take(int64_t{5} << 20);
  EXPECT_GE(small.capacity, 1000);
  EXPECT_GE(large.capacity, int64_t{5} << 20);
  const char* const small_data = small.data.get();
  const char* const large_data = large.data.get();
  pool.Give(std::move(small));
  pool.Give(std::move(large));
  EXPECT_EQ(pool.Take(900).data.get(), small_data);
  // The pool does not spend the large buffer on a small message.
  EXPECT_NE(pool.Take(900).data.get(), large_data);
  EXPECT_EQ(pool.held(), 1);
  EXPECT_EQ(pool.Take(int64_t{5} << 20).data.get(), large_data);
  EXPECT_EQ(pool.held(), 0);
  EXPECT_NE(pool.Take(0).data, nullptr);
}

TEST(BufferPoolTest, TheSmallestThatFitsIsTaken) {
  BufferPool pool;
  Buffer a = pool.Take(6400), b = pool.Take(5120), c = pool.Take(4480);
  const char* const best = b.data.get();
  pool.Give(std::move(a));
  pool.Give(std::move(b));
  pool.Give(std::move(c));
  EXPECT_EQ(pool.Take(5000).data.get(), best);
}

}  // namespace
}  // namespace partita::comm
