// The reference lists the rows that each member holds as (sender, destination).
#include "runtime/comm/row_cases.h"

#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/started.h"

namespace partita::comm {
namespace {

constexpr int64_t kWidth = 3;

struct RowCase {
  const char* name;
  int64_t rows, choices;
  // The destination of choice p of a member's rows, in a group of n.
  int64_t (*to)(int member, int64_t p, int64_t n);
};

constexpr RowCase kCases[] = {
    {"spread", 5, 2,
     [](int member, int64_t p, int64_t n) { return (p * p + member) % n; }},
    {"some are not sent", 7, 1,
     [](int member, int64_t p, int64_t n) {
       return (p + member) % (n + 2) - 1;
     }},
    {"all to the last", 4, 3, [](int, int64_t, int64_t n) { return n - 1; }},
    {"only the first sends", 6, 2,
     [](int member, int64_t p, int64_t n) {
       return member == 0 ? p % n : int64_t{-1};
     }},
    {"none", 3, 2, [](int, int64_t, int64_t n) { return n; }},
    {"no rows", 0, 2, [](int, int64_t, int64_t) { return int64_t{0}; }}};

std::vector<int64_t> Destinations(const RowCase& given, int member, int n) {
  std::vector<int64_t> to;
  for (int64_t p = 0; p < given.rows * given.choices; ++p)
    to.push_back(given.to(member, p, n));
  return to;
}

float Element(int member, int64_t row, int64_t column) {
  return static_cast<float>(1000 * member + 10 * row + column);
}

// What a holder adds to the rows that it got.
float Worked(float value, int holder) {
  return value + 0.5F + static_cast<float>(holder);
}

Operation Rows(Kind kind, int64_t input, int64_t output, int64_t size) {
  Operation op;
  op.kind = kind;
  op.input_shape = {input, kWidth};
  op.output_shape = {output, kWidth};
  op.dim = 0;
  op.size = size;
  op.fill = -1;
  op.name = "experts";
  return op;
}

absl::Status Wrong(const RowCase& given, const char* what, int64_t row,
                   float found, float expected) {
  return absl::InternalError(absl::StrCat(given.name, ", ", what, " row ", row,
                                          ": expected ", expected, ", found ",
                                          found));
}

// How a member runs its operations: at once, or started and awaited.
class Runner {
 public:
  Runner(Communicator& communicator, StartedOperations* started)
      : communicator_(communicator), started_(started) {}

  absl::StatusOr<std::unique_ptr<Collective>> Prepare(Operation operation) {
    std::vector<int> ranks(static_cast<size_t>(communicator_.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return started_ == nullptr
               ? communicator_.Prepare(std::move(operation), ranks)
               : started_->Prepare(std::move(operation), ranks);
  }
  absl::Status Run(Collective& collective, const float* input,
                   const int64_t* to, float* output) {
    if (started_ == nullptr)
      return communicator_.RunRows(collective, input, to, output);
    PARTITA_ASSIGN_OR_RETURN(
        const int64_t number,
        started_->StartRows(collective, input, to, output));
    const absl::Status awaited = started_->Await(number);
    // After an error, the caller's memory must not be in use.
    if (!awaited.ok()) started_->GiveUp(awaited);
    return awaited;
  }

 private:
  Communicator& communicator_;
  StartedOperations* started_;
};

absl::Status CheckCase(Communicator& communicator, StartedOperations* started,
                       const RowCase& given) {
  Runner runner(communicator, started);
  const int n = communicator.size(), own = communicator.rank();
  const std::vector<int64_t> to = Destinations(given, own, n);
  const int64_t size = static_cast<int64_t>(to.size()), room = n * size;
  PARTITA_ASSIGN_OR_RETURN(
      auto send, runner.Prepare(Rows(Kind::kSendRows, given.rows, room, size)));
  PARTITA_ASSIGN_OR_RETURN(
      auto back, runner.Prepare(Rows(Kind::kReturnRows, room, size, size)));
  std::vector<float> input, held(static_cast<size_t>(room * kWidth), 77),
      output(static_cast<size_t>(size * kWidth), 77);
  for (int64_t row = 0; row < given.rows; ++row)
    for (int64_t column = 0; column < kWidth; ++column)
      input.push_back(Element(own, row, column));
  PARTITA_RETURN_IF_ERROR(
      runner.Run(*send, input.data(), to.data(), held.data()));
  int64_t row = 0;
  for (int member = 0; member < n; ++member) {
    const std::vector<int64_t> theirs = Destinations(given, member, n);
    for (size_t p = 0; p < theirs.size(); ++p) {
      if (theirs[p] != own) continue;
      for (int64_t column = 0; column < kWidth; ++column) {
        float& found = held[static_cast<size_t>(row * kWidth + column)];
        const float expected =
            Element(member, static_cast<int64_t>(p) / given.choices, column);
        if (found != expected)
          return Wrong(given, "held", row, found, expected);
        found = Worked(found, own);
      }
      ++row;
    }
  }
  for (int64_t i = row * kWidth; i < room * kWidth; ++i)
    if (const float found = held[static_cast<size_t>(i)]; found != -1)
      return Wrong(given, "empty", i / kWidth, found, -1);
  PARTITA_RETURN_IF_ERROR(
      runner.Run(*back, held.data(), to.data(), output.data()));
  for (int64_t i = 0; i < size * kWidth; ++i) {
    const int64_t p = i / kWidth, holder = to[static_cast<size_t>(p)];
    const float expected =
        holder < 0 || holder >= n
            ? 0
            : Worked(Element(own, p / given.choices, i % kWidth),
                     static_cast<int>(holder));
    if (const float found = output[static_cast<size_t>(i)]; found != expected)
      return Wrong(given, "returned", p, found, expected);
  }
  return absl::OkStatus();
}

template <typename Body>
std::vector<absl::Status> OnEach(
    const std::vector<std::unique_ptr<Communicator>>& communicators,
    const Body& body) {
  std::vector<absl::Status> statuses(communicators.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < statuses.size(); ++i)
    threads.emplace_back([&, i] { statuses[i] = body(*communicators[i]); });
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

// Sends 4 rows of each of two members to member 1, which has room for 5.
absl::Status SendTooMany(Communicator& communicator,
                         StartedOperations* started) {
  Runner runner(communicator, started);
  PARTITA_ASSIGN_OR_RETURN(auto send,
                           runner.Prepare(Rows(Kind::kSendRows, 4, 5, 4)));
  const std::vector<int64_t> to(4, 1);
  const std::vector<float> input(4 * kWidth);
  std::vector<float> held(5 * kWidth);
  PARTITA_RETURN_IF_ERROR(
      runner.Run(*send, input.data(), to.data(), held.data()));
  // A member without an error of its own learns of it at the next operation.
  return runner.Run(*send, input.data(), to.data(), held.data());
}

absl::Status SendTooManyAtOnce(Communicator& communicator) {
  return SendTooMany(communicator, nullptr);
}

absl::Status StartTooMany(Communicator& communicator) {
  StartedOperations started(communicator);
  return SendTooMany(communicator, &started);
}

}  // namespace

absl::Status MoveRowsAround(Communicator& communicator) {
  for (const RowCase& given : kCases)
    PARTITA_RETURN_IF_ERROR(CheckCase(communicator, nullptr, given));
  StartedOperations started(communicator);
  for (const RowCase& given : kCases)
    PARTITA_RETURN_IF_ERROR(CheckCase(communicator, &started, given));
  return absl::OkStatus();
}

void CheckRows(
    const std::function<std::vector<std::unique_ptr<Communicator>>(int)>&
        make) {
  for (int n = 1; n <= 5; ++n)
    for (const absl::Status& status : OnEach(make(n), MoveRowsAround))
      EXPECT_TRUE(status.ok()) << status << " of " << n;
  for (const auto send : {SendTooManyAtOnce, StartTooMany}) {
    const auto statuses = OnEach(make(2), send);
    EXPECT_FALSE(statuses[0].ok());
    EXPECT_EQ(statuses[1].code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(
        statuses[1].message(),
        "expected at most 5 rows for the experts of device 1 of the group, "
        "found 8: 2.00 times the even share of 4; give the plan 'experts: "
        "{rows: 2.00}' (--experts rows=2.00) or more, or leave the bound "
        "out");
  }
}

}  // namespace partita::comm
