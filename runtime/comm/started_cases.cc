// Scenarios of started operations.
#include "runtime/comm/started_cases.h"

#include <numeric>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/started.h"
#include "runtime/comm/test_cases.h"

namespace partita::comm {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Make = std::function<std::vector<std::unique_ptr<Communicator>>(
    int, milliseconds)>;

// Long enough for a thread to be scheduled on a busy machine.
constexpr milliseconds kTimeout(600);

std::vector<int> AllRanks(const Communicator& communicator) {
  std::vector<int> ranks(static_cast<size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Operation Sum(int64_t count) {
  Operation op;
  op.input_shape = op.output_shape = {count};
  op.name = "started";
  return op;
}

// Starts a sum over all, works for a while, and awaits it.
absl::Status SumBeside(Communicator& communicator, milliseconds work) {
  StartedOperations started(communicator);
  std::vector<float> value(4, 1), sum(4);
  PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<Collective> collective,
                           started.Prepare(Sum(4), AllRanks(communicator)));
  PARTITA_ASSIGN_OR_RETURN(
      const int64_t number,
      started.Start(*collective, value.data(), sum.data()));
  for (milliseconds at{0}; at < work; at += milliseconds(10)) {
    std::this_thread::sleep_for(milliseconds(10));
    PARTITA_RETURN_IF_ERROR(communicator.Progress());
  }
  PARTITA_RETURN_IF_ERROR(started.Await(number));
  return sum[3] == static_cast<float>(communicator.size())
             ? absl::OkStatus()
             : absl::InternalError("wrong sum");
}

// Status of `body` on each rank; a rank that fails calls Fail.
template <typename Body>
std::vector<absl::Status> OnEach(
    std::vector<std::unique_ptr<Communicator>> communicators,
    const Body& body) {
  std::vector<absl::Status> statuses(communicators.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < statuses.size(); ++i) {
    threads.emplace_back([&, i] {
      statuses[i] = body(*communicators[i]);
      if (!statuses[i].ok()) communicators[i]->Fail(statuses[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

template <typename Body>
void ExpectAllOk(std::vector<std::unique_ptr<Communicator>> communicators,
                 const Body& body) {
  for (const absl::Status& status : OnEach(std::move(communicators), body))
    EXPECT_TRUE(status.ok()) << status;
}

// Others wait for a rank that works for long, however long they waited before
// they needed the result.
void CheckTimeout(const Make& make) {
  ExpectAllOk(make(3, kTimeout), [](Communicator& c) -> absl::Status {
    return SumBeside(c, c.rank() == 0 ? milliseconds(0) : 2 * kTimeout);
  });
  ExpectAllOk(make(2, kTimeout), [](Communicator& c) -> absl::Status {
    if (c.rank() == 1) std::this_thread::sleep_for(2 * kTimeout);
    return SumBeside(c, 3 * kTimeout);
  });
}

void CheckFailures(const Make& make) {
  const Clock::time_point begin = Clock::now();
  const auto stalled =
      OnEach(make(3, kTimeout), [](Communicator& c) -> absl::Status {
        if (c.rank() != 2) return SumBeside(c, milliseconds(0));
        std::this_thread::sleep_for(3 * kTimeout);
        return c.Progress();
      });
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(std::string(stalled[i].message()), HasSubstr("rank 2"));
    EXPECT_THAT(std::string(stalled[i].message()),
                HasSubstr("did not arrive at all_reduce 'started' of f32[4] "
                          "within 600 ms and made no progress"));
  }
  const auto failed =
      OnEach(make(3, milliseconds(60000)), [](Communicator& c) -> absl::Status {
        return c.rank() == 2 ? absl::DataLossError("disk on fire")
                             : SumBeside(c, milliseconds(0));
      });
  for (size_t i = 0; i < 2; ++i)
    EXPECT_THAT(std::string(failed[i].message()), HasSubstr("disk on fire"));
  EXPECT_LT(Clock::now() - begin, milliseconds(10000));
}

// Nobody waits for operations that are started and never awaited.
void CheckGivenUp(const Make& make) {
  const Clock::time_point begin = Clock::now();
  const auto statuses =
      OnEach(make(2, milliseconds(60000)), [](Communicator& c) -> absl::Status {
        if (c.rank() == 1) return absl::OkStatus();
        StartedOperations started(c);
        std::vector<float> value(4, 1);
        PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<Collective> collective,
                                 started.Prepare(Sum(4), {0, 1}));
        PARTITA_RETURN_IF_ERROR(
            started.Start(*collective, value.data(), value.data()).status());
        started.GiveUp(absl::CancelledError("enough"));
        return started.Await(1);
      });
  EXPECT_FALSE(statuses[0].ok());
  EXPECT_LT(Clock::now() - begin, milliseconds(10000));
}

}  // namespace

absl::Status StartedAmongOthers(Communicator& communicator) {
  StartedOperations started(communicator);
  const int n = communicator.size();
  const size_t rank = static_cast<size_t>(communicator.rank());
  struct Case {
    Operation operation;
    std::vector<std::string> inputs;
    std::unique_ptr<Collective> in_place, beside;
    std::string output;
  };
  std::vector<Case> cases;
  for (Operation& operation : TestOperations(n)) {
    Case one;
    for (int i = 0; i < n; ++i) one.inputs.push_back(TestInput(operation, i));
    PARTITA_ASSIGN_OR_RETURN(
        one.in_place, communicator.Prepare(operation, AllRanks(communicator)));
    PARTITA_ASSIGN_OR_RETURN(
        one.beside, started.Prepare(operation, AllRanks(communicator)));
    one.output.assign(static_cast<size_t>(operation.OutputBytes()), '\xEE');
    one.operation = std::move(operation);
    cases.push_back(std::move(one));
  }
  const auto check = [&](const Case& one, const std::string& output) {
    return output == ExpectedOutput(one.operation, n, communicator.rank(),
                                    one.inputs)
               ? absl::OkStatus()
               : absl::InternalError("wrong result of " +
                                     Describe(one.operation));
  };
  // Operations in place run backwards, so the two endpoints are never at the
  // same one.
  for (size_t i = 0; i < cases.size(); ++i) {
    Case& one = cases[i];
    PARTITA_RETURN_IF_ERROR(
        started.Start(*one.beside, one.inputs[rank].data(), one.output.data())
            .status());
    const Case& other = cases[cases.size() - 1 - i];
    std::string output(other.output.size(), '\xEE');
    PARTITA_RETURN_IF_ERROR(communicator.Run(
        *other.in_place, other.inputs[rank].data(), output.data()));
    PARTITA_RETURN_IF_ERROR(check(other, output));
    if (i % 3 != 2) continue;
    PARTITA_RETURN_IF_ERROR(started.Await(static_cast<int64_t>(i)));
    PARTITA_RETURN_IF_ERROR(check(cases[i - 1], cases[i - 1].output));
  }
  PARTITA_RETURN_IF_ERROR(started.Await(started.last()));
  for (const Case& one : cases) PARTITA_RETURN_IF_ERROR(check(one, one.output));
  return absl::OkStatus();
}

void CheckStarted(const Make& make) {
  for (const int n : {1, 2, 3})
    ExpectAllOk(make(n, milliseconds(20000)), &StartedAmongOthers);
  CheckTimeout(make);
  CheckFailures(make);
  CheckGivenUp(make);
}

}  // namespace partita::comm
