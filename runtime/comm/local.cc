// Collectives in shared memory. Members publish their buffer addresses and meet
// at a barrier. Each owner of a part of the result then reads that part from
// all inputs, with no further synchronisation. A second barrier keeps buffers
// valid until everyone is done.
#include "runtime/comm/local.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/processors.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/barrier.h"
#include "runtime/comm/mailbox.h"
#include "runtime/comm/reduce.h"
#include "runtime/comm/rows.h"

namespace partita::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSlice{20};
// Parts of an all_reduce begin at cache lines.
constexpr int64_t kLine = 64;

// Data that a member publishes to its group between two barriers.
struct alignas(64) Posting {
  const Collective* collective = nullptr;
  uint64_t fingerprint = 0;
  const char* input = nullptr;
  char* output = nullptr;
  const int64_t* to = nullptr;  // destinations of rows
  // Number of this group's barriers that the member has reached.
  std::atomic<uint64_t> arrivals{0};
};

struct Group {
  Group(std::vector<int> members, std::chrono::nanoseconds spin)
      : ranks(std::move(members)),
        postings(ranks.size()),
        barrier(static_cast<int>(ranks.size()), spin) {}

  const std::vector<int> ranks;
  std::vector<Posting> postings;
  Barrier barrier;
  Mailbox mailbox;
};

struct alignas(64) Heart {
  std::atomic<uint64_t> beats{0};
  // Asleep at a barrier, so not the cause of a stall.
  std::atomic<bool> waits{false};
  // Asleep until its second endpoint is done.
  std::atomic<bool> awaits_beside{false};
};

// State shared by all ranks.
class Hub {
 public:
  Hub(int size, const CommOptions& options)
      : options_(options),
        hearts_(static_cast<size_t>(size)),
        spin_(size <= base::AvailableProcessors()
                  ? std::chrono::microseconds(50)
                  : std::chrono::microseconds(1)) {}

  int size() const { return static_cast<int>(hearts_.size()); }
  std::chrono::milliseconds timeout() const { return options_.timeout; }
  Heart& heart(int rank) { return hearts_[static_cast<size_t>(rank)]; }

  // Second endpoints have groups of their own, and leave processors to the
  // first endpoints.
  Group* GroupOf(bool beside, const std::vector<int>& ranks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Group>& group = groups_[{beside, ranks}];
    if (group == nullptr)
      group = std::make_unique<Group>(
          ranks, beside ? std::chrono::microseconds(1) : spin_);
    return group.get();
  }

  // Only the first failure is recorded.
  void Fail(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failed_.load(std::memory_order_relaxed)) failure_ = status;
    failed_.store(true, std::memory_order_release);
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  absl::Status failure() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }

 private:
  const CommOptions options_;
  std::vector<Heart> hearts_;
  const std::chrono::microseconds spin_;
  std::mutex mutex_;
  std::map<std::pair<bool, std::vector<int>>, std::unique_ptr<Group>> groups_;
  std::atomic<bool> failed_{false};
  absl::Status failure_;
};

class LocalCollective : public Collective {
 public:
  LocalCollective(Operation operation, Group* group, int index)
      : Collective(std::move(operation), group->ranks, index),
        group(group),
        inputs(group->ranks.size()),
        outputs(group->ranks.size()) {
    for (int i = 0; i < group_size(); ++i)
      pieces.push_back(PieceOf(this->operation(), group_size(), index, i));
  }

  Group* const group;
  std::vector<Box> pieces;  // of this member's output, by sender
  // Buffers for Reduce's arguments.
  std::vector<const char*> inputs;
  std::vector<char*> outputs;
};

class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Hub> hub, int rank, bool beside = false)
      : hub_(std::move(hub)), rank_(rank), beside_(beside) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_->size(); }
  std::string Describe(int rank) const override {
    return absl::StrCat("rank ", rank);
  }

  absl::StatusOr<std::unique_ptr<Collective>> Prepare(
      Operation operation, std::vector<int> ranks) override {
    const auto found = std::find(ranks.begin(), ranks.end(), rank_);
    if (found == ranks.end()) {
      return absl::InternalError(
          absl::StrCat("rank ", rank_, " prepares ", comm::Describe(operation),
                       " of a group that it does not belong to"));
    }
    const int index = static_cast<int>(found - ranks.begin());
    return std::unique_ptr<Collective>(std::make_unique<LocalCollective>(
        std::move(operation), hub_->GroupOf(beside_, ranks), index));
  }

  absl::Status Run(Collective& collective, const void* input,
                   void* output) override;
  absl::Status RunRows(Collective& collective, const void* input,
                       const int64_t* to, void* output) override;
  absl::Status Expect(Collective& transfer, void* output) override;
  absl::Status Await(Collective& transfer, void* output) override;
  void Abandon() override {
    for (Mailbox* mailbox : expected_) mailbox->Forget();
    expected_.clear();
  }

  std::unique_ptr<Communicator> MakeBeside() override {
    return std::make_unique<LocalCommunicator>(hub_, rank_, true);
  }

  // The second endpoint detects stalled ranks by itself.
  absl::Status WaitFor(Communicator& beside, const Done& done) override {
    Heart& heart = hub_->heart(rank_);
    heart.waits.store(true, std::memory_order_relaxed);
    heart.awaits_beside.store(true, std::memory_order_relaxed);
    while (!done(kSlice)) {
    }
    heart.awaits_beside.store(false, std::memory_order_relaxed);
    heart.waits.store(false, std::memory_order_relaxed);
    return absl::OkStatus();
  }

  absl::Status Progress() override {
    hub_->heart(rank_).beats.fetch_add(1, std::memory_order_relaxed);
    return hub_->failed() ? Aborted() : absl::OkStatus();
  }

  uint64_t Beats() const override {
    return hub_->heart(rank_).beats.load(std::memory_order_relaxed);
  }

  void Fail(const absl::Status& status) override {
    hub_->Fail(absl::Status(
        status.code(), absl::StrCat("rank ", rank_, ": ", status.message())));
  }

 private:
  absl::Status Aborted() const {
    return absl::AbortedError(absl::StrCat(
        "rank ", rank_,
        " was ended by another failure: ", hub_->failure().message()));
  }
  static void Post(LocalCollective& collective, const void* input,
                   const int64_t* to, void* output);
  // Members read each other's buffers between the two barriers. The first can
  // be given up; at the second, all wait for members that still read.
  enum class Meeting { kBegin, kEnd };
  absl::Status Meet(LocalCollective& collective, Meeting meeting);
  absl::Status AwaitMeeting(LocalCollective& collective, Meeting meeting,
                            uint32_t ticket, uint64_t arrival);
  absl::Status Sleep(LocalCollective& collective, Meeting meeting,
                     uint32_t ticket, uint64_t arrival);
  absl::Status TimeOut(LocalCollective& collective,
                       const std::vector<size_t>& missing);
  absl::Status CheckPostings(LocalCollective& collective);
  void Exchange(LocalCollective& collective);
  void Send(LocalCollective& collective, const char* data);
  absl::Status Receive(LocalCollective& collective, const char* data);
  void AllReduce(LocalCollective& collective);
  void ReduceScatter(LocalCollective& collective);

  const std::shared_ptr<Hub> hub_;
  const int rank_;
  const bool beside_;
  std::set<Mailbox*> expected_;  // mailboxes in which Expect was called
};

absl::Status LocalCommunicator::TimeOut(LocalCollective& collective,
                                        const std::vector<size_t>& missing) {
  std::string names;
  for (const size_t i : missing)
    absl::StrAppend(&names, names.empty() ? "" : ", ",
                    Describe(collective.ranks()[i]));
  const absl::Status status = DidNotArrive(
      names, collective,
      hub_->timeout() * collective.operation().timeout_factor,
      absl::StrCat(" and made no progress (rank ", rank_, " waited)"));
  hub_->Fail(status);
  return status;
}

absl::Status LocalCommunicator::AwaitMeeting(LocalCollective& collective,
                                             Meeting meeting, uint32_t ticket,
                                             uint64_t arrival) {
  if (beside_) return Sleep(collective, meeting, ticket, arrival);
  hub_->heart(rank_).waits.store(true, std::memory_order_relaxed);
  const absl::Status status = Sleep(collective, meeting, ticket, arrival);
  hub_->heart(rank_).waits.store(false, std::memory_order_relaxed);
  return status;
}

// Sleeps until all have arrived, while the missing members make progress.
// Members that wait for others in turn get twice the time, so that a stalled
// rank is found by the ranks that wait for it.
absl::Status LocalCommunicator::Sleep(LocalCollective& collective,
                                      Meeting meeting, uint32_t ticket,
                                      uint64_t arrival) {
  Group& group = *collective.group;
  const std::chrono::milliseconds timeout =
      hub_->timeout() * collective.operation().timeout_factor;
  Clock::time_point since = Clock::now();
  uint64_t seen = 0;
  while (!group.barrier.Wait(ticket, kSlice)) {
    if (meeting == Meeting::kBegin && hub_->failed())
      return group.barrier.Leave(ticket) ? Aborted() : absl::OkStatus();
    std::vector<size_t> missing, idle;
    uint64_t beats = 0;
    for (size_t i = 0; i < group.postings.size(); ++i) {
      if (group.postings[i].arrivals.load(std::memory_order_relaxed) >= arrival)
        continue;
      const Heart& heart = hub_->heart(group.ranks[i]);
      missing.push_back(i);
      if (!heart.waits.load(std::memory_order_relaxed)) idle.push_back(i);
      beats += heart.beats.load(std::memory_order_relaxed);
    }
    const uint64_t state = beats * (group.ranks.size() + 1) + missing.size();
    // Nobody needs a second endpoint's work before it is awaited.
    const bool needed = !beside_ || hub_->heart(rank_).awaits_beside.load(
                                        std::memory_order_relaxed);
    if (state != seen || !needed) {
      seen = state;
      since = Clock::now();
      continue;
    }
    const auto waited = Clock::now() - since;
    if (missing.empty() || waited <= (idle.empty() ? 2 * timeout : timeout))
      continue;
    return group.barrier.Leave(ticket)
               ? TimeOut(collective, idle.empty() ? missing : idle)
               : absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status LocalCommunicator::Meet(LocalCollective& collective,
                                     Meeting meeting) {
  Group& group = *collective.group;
  hub_->heart(rank_).beats.fetch_add(1, std::memory_order_relaxed);
  Posting& own = group.postings[static_cast<size_t>(collective.index())];
  const uint64_t arrival =
      own.arrivals.fetch_add(1, std::memory_order_relaxed) + 1;
  uint32_t ticket;
  if (group.barrier.Arrive(ticket) || group.barrier.Spin(ticket))
    return absl::OkStatus();
  return AwaitMeeting(collective, meeting, ticket, arrival);
}

// If one member finds a mismatch, all do; nobody leaves before all have
// checked.
absl::Status LocalCommunicator::CheckPostings(LocalCollective& collective) {
  const Group& group = *collective.group;
  for (size_t i = 0; i < group.postings.size(); ++i) {
    const Posting& posting = group.postings[i];
    if (posting.fingerprint == collective.fingerprint()) continue;
    const absl::Status status = absl::InternalError(absl::StrCat(
        "rank ", rank_, " arrived at ", comm::Describe(collective.operation()),
        ", but rank ", group.ranks[i], " at ",
        comm::Describe(posting.collective->operation())));
    hub_->Fail(status);
    PARTITA_RETURN_IF_ERROR(Meet(collective, Meeting::kEnd));
    return status;
  }
  return absl::OkStatus();
}

// Member i combines the i-th part of all inputs and writes it to all outputs,
// so each byte is read and written once per member that has it. Works in place,
// since no other member accesses these parts.
void LocalCommunicator::AllReduce(LocalCollective& collective) {
  const Operation& operation = collective.operation();
  const int64_t bytes = operation.InputBytes();
  const int64_t lines = (bytes + kLine - 1) / kLine;
  const int64_t n = collective.group_size();
  const int64_t i = collective.index();
  const int64_t begin = std::min(bytes, lines * i / n * kLine);
  const int64_t end = std::min(bytes, lines * (i + 1) / n * kLine);
  for (size_t j = 0; j < collective.inputs.size(); ++j) {
    const Posting& posting = collective.group->postings[j];
    collective.inputs[j] = posting.input + begin;
    collective.outputs[j] = posting.output + begin;
  }
  Reduce(operation.reduction, operation.dtype, collective.inputs,
         collective.outputs, (end - begin) / base::SizeOf(operation.dtype));
}

void LocalCommunicator::ReduceScatter(LocalCollective& collective) {
  const Operation& operation = collective.operation();
  const size_t own = static_cast<size_t>(collective.index());
  const std::vector<Posting>& postings = collective.group->postings;
  const Box& box = collective.pieces[own];
  const int64_t count = box.run / base::SizeOf(operation.dtype);
  collective.outputs.resize(1);
  ForEachRun(box, [&](int64_t from, int64_t to) {
    for (size_t j = 0; j < postings.size(); ++j)
      collective.inputs[j] = postings[j].input + from;
    collective.outputs[0] = postings[own].output + to;
    Reduce(operation.reduction, operation.dtype, collective.inputs,
           collective.outputs, count);
  });
}

void LocalCommunicator::Exchange(LocalCollective& collective) {
  const std::vector<Posting>& postings = collective.group->postings;
  const size_t own = static_cast<size_t>(collective.index());
  switch (collective.operation().kind) {
    case Kind::kAllReduce:
      return AllReduce(collective);
    case Kind::kReduceScatter:
      ReduceScatter(collective);
      break;
    default:
      // Each begins with its own piece, so that they do not all read from the
      // same member at once.
      for (size_t k = 0; k < postings.size(); ++k) {
        const size_t j = (own + k) % postings.size();
        if (collective.pieces[j].run == 0) continue;
        CopyBox(collective.pieces[j], postings[j].input, postings[own].output);
      }
  }
  FillBlanks(collective.operation(), collective.group_size(),
             collective.index(), postings[own].output);
}

void LocalCommunicator::Send(LocalCollective& collective, const char* data) {
  hub_->heart(rank_).beats.fetch_add(1, std::memory_order_relaxed);
  collective.group->mailbox.Send(collective.fingerprint(),
                                 comm::Describe(collective.operation()), data,
                                 collective.operation().InputBytes());
}

// Waits while the sender makes progress, and twice as long if it waits itself.
absl::Status LocalCommunicator::Receive(LocalCollective& collective,
                                        const char* data) {
  Mailbox& mailbox = collective.group->mailbox;
  const Heart& sender = hub_->heart(collective.ranks()[0]);
  const std::chrono::milliseconds timeout =
      hub_->timeout() * collective.operation().timeout_factor;
  Clock::time_point since = Clock::now();
  uint64_t seen = 0;
  while (true) {
    const std::optional<std::string> came = mailbox.Await(data, kSlice);
    if (came && came->empty()) return absl::OkStatus();
    if (came) {
      const absl::Status status = WrongTransfer(collective, *came);
      hub_->Fail(status);
      return status;
    }
    const uint64_t beats = sender.beats.load(std::memory_order_relaxed);
    if (beats != seen) since = Clock::now();
    seen = beats;
    const bool waits = sender.waits.load(std::memory_order_relaxed);
    const bool late = Clock::now() - since > (waits ? 2 * timeout : timeout);
    if (!late && !hub_->failed()) continue;
    Abandon();
    return hub_->failed() ? Aborted() : TimeOut(collective, {0});
  }
}

absl::Status LocalCommunicator::Expect(Collective& base, void* output) {
  LocalCollective& collective = static_cast<LocalCollective&>(base);
  if (hub_->failed()) return Aborted();
  Mailbox& mailbox = collective.group->mailbox;
  mailbox.Expect(collective.fingerprint(), static_cast<char*>(output));
  expected_.insert(&mailbox);
  return absl::OkStatus();
}

absl::Status LocalCommunicator::Await(Collective& base, void* output) {
  LocalCollective& collective = static_cast<LocalCollective&>(base);
  if (hub_->failed()) return Aborted();
  Heart& heart = hub_->heart(rank_);
  heart.beats.fetch_add(1, std::memory_order_relaxed);
  heart.waits.store(true, std::memory_order_relaxed);
  const absl::Status status =
      Receive(collective, static_cast<const char*>(output));
  heart.waits.store(false, std::memory_order_relaxed);
  return status;
}

void LocalCommunicator::Post(LocalCollective& collective, const void* input,
                             const int64_t* to, void* output) {
  Posting& own =
      collective.group->postings[static_cast<size_t>(collective.index())];
  own.collective = &collective;
  own.fingerprint = collective.fingerprint();
  own.input = static_cast<const char*>(input);
  own.to = to;
  own.output = static_cast<char*>(output);
}

absl::Status LocalCommunicator::Run(Collective& base, const void* input,
                                    void* output) {
  LocalCollective& collective = static_cast<LocalCollective&>(base);
  if (hub_->failed()) return Aborted();
  if (collective.operation().kind == Kind::kTransfer) {
    if (collective.index() == 1) {
      PARTITA_RETURN_IF_ERROR(Expect(base, output));
      return Await(base, output);
    }
    Send(collective, static_cast<const char*>(input));
    return absl::OkStatus();
  }
  Post(collective, input, nullptr, output);
  // A slice needs no other member.
  const bool alone = collective.group_size() == 1 ||
                     collective.operation().kind == Kind::kAllSlice;
  if (alone) {
    Exchange(collective);
    return absl::OkStatus();
  }
  PARTITA_RETURN_IF_ERROR(Meet(collective, Meeting::kBegin));
  PARTITA_RETURN_IF_ERROR(CheckPostings(collective));
  Exchange(collective);
  return Meet(collective, Meeting::kEnd);
}

// A member that gets too many rows tells the others before it leaves.
absl::Status LocalCommunicator::RunRows(Collective& base, const void* input,
                                        const int64_t* to, void* output) {
  LocalCollective& collective = static_cast<LocalCollective&>(base);
  if (hub_->failed()) return Aborted();
  Post(collective, input, to, output);
  const bool alone = collective.group_size() == 1;
  if (!alone) {
    PARTITA_RETURN_IF_ERROR(Meet(collective, Meeting::kBegin));
    PARTITA_RETURN_IF_ERROR(CheckPostings(collective));
  }
  std::vector<RowOperands> members;
  for (const Posting& posting : collective.group->postings)
    members.push_back({posting.input, posting.to});
  const int64_t rows =
      CollectRows(collective.operation(), members, collective.index(),
                  static_cast<char*>(output));
  const absl::Status status =
      CheckCapacity(collective.operation(), collective.index(), rows);
  if (!status.ok()) Fail(status);
  if (!alone) PARTITA_RETURN_IF_ERROR(Meet(collective, Meeting::kEnd));
  return status;
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeLocalCommunicators(
    int size, const CommOptions& options) {
  const auto hub = std::make_shared<Hub>(size, options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank)
    communicators.push_back(std::make_unique<LocalCommunicator>(hub, rank));
  return communicators;
}

}  // namespace partita::comm
