// Runs operations over a transport, and waits for ranks while they show signs
// of life. message_exchange.cc says which messages a collective consists of.
#include "runtime/comm/message.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/life_signs.h"
#include "runtime/comm/message_exchange.h"
#include "runtime/comm/outbox.h"
#include "runtime/comm/rows.h"
#include "runtime/comm/shared_transport.h"

namespace partita::comm {
namespace {

using Clock = std::chrono::steady_clock;

class MessageCommunicator : public Communicator {
 public:
  MessageCommunicator(std::shared_ptr<SharedTransport> transport,
                      const CommOptions& options, bool beside)
      : transport_(std::move(transport)),
        options_(options),
        beside_(beside),
        outbox_(*transport_),
        signs_(*transport_, options.timeout) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  std::string Describe(int rank) const override {
    return transport_->Describe(rank);
  }
  absl::StatusOr<std::unique_ptr<Collective>> Prepare(
      Operation operation, std::vector<int> ranks) override;
  absl::Status Run(Collective& collective, const void* input,
                   void* output) override;
  absl::Status RunRows(Collective& collective, const void* input,
                       const int64_t* to, void* output) override;
  absl::Status Expect(Collective& transfer, void* output) override;
  absl::Status Await(Collective& transfer, void* output) override;
  std::unique_ptr<Communicator> MakeBeside() override {
    if (!transport_->ServesSeveralThreads()) return nullptr;
    return std::make_unique<MessageCommunicator>(transport_, options_, true);
  }
  absl::Status WaitFor(Communicator& beside, const Done& done) override;
  // Only the first endpoint gives signs of life.
  absl::Status Progress() override {
    beats_.fetch_add(1, std::memory_order_relaxed);
    PARTITA_RETURN_IF_ERROR(failure_);
    if (!beside_) PARTITA_RETURN_IF_ERROR(signs_.Work());
    return transport_->Health();
  }
  uint64_t Beats() const override {
    return beats_.load(std::memory_order_relaxed);
  }
  void Fail(const absl::Status& status) override {
    if (!failure_.ok()) return;
    failure_ = status;
    transport_->Fail(status);
  }

 private:
  struct Pending {
    Transport::Request request;
    int rank;
  };

  // A transfer that may arrive. Its memory receives data until the request is
  // done; a rank that fails receives no more.
  struct Expectation {
    const void* output = nullptr;
    uint64_t fingerprint = 0;  // received
    Transport::Request head = nullptr, body = nullptr;
  };

  // Ends an operation; after an error, no later one runs.
  absl::Status End(const absl::Status& status);
  absl::Status Execute(MessageCollective& collective, const char* input,
                       char* output);
  // Valid as long as `collective`.
  MemberChannel ChannelOf(const MessageCollective& collective);
  absl::Status ReceiveTransfer(MessageCollective& collective,
                               const Expectation& expectation);
  absl::Status FinishOne(MessageCollective& collective,
                         Transport::Request request);
  Transport::Stream stream() const {
    return beside_ ? Transport::Stream::kBeside
                   : Transport::Stream::kCollectives;
  }
  absl::Status Send(const char* data, int64_t bytes, int to);
  absl::Status Receive(char* data, int64_t bytes, int from);
  absl::Status Finish(const MessageCollective& collective);
  // Ranks that a wait depends on, and the time since nothing has arrived.
  struct Wait {
    const MessageCollective* collective = nullptr;  // null: no wait
    std::vector<int> ranks;
    Clock::time_point since;
  };
  Wait Waiting(const MessageCollective& collective,
               Clock::time_point since) const;
  // Called during a wait: fails if a rank that it depends on is timed out.
  absl::Status Judge(const Wait& wait);
  absl::Status TimeOut(const MessageCollective& collective,
                       const std::vector<int>& ranks);
  // Called by the second endpoint: publishes its current wait for the first
  // endpoint to judge.
  void Tell(Wait wait);
  absl::Status CheckFirst() const;

  const std::shared_ptr<SharedTransport> transport_;
  const CommOptions options_;
  const bool beside_;
  Outbox outbox_;
  LifeSigns signs_;
  std::vector<Pending> pending_;
  std::list<Expectation> expected_;
  std::vector<char> scratch_;  // shared by all operations
  absl::Status failure_;
  std::atomic<uint64_t> beats_{0};
  std::mutex told_mutex_;
  Wait told_;
};

absl::StatusOr<std::unique_ptr<Collective>> MessageCommunicator::Prepare(
    Operation operation, std::vector<int> ranks) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank());
  if (found == ranks.end()) {
    return absl::InternalError(
        absl::StrCat("rank ", rank(), " prepares ", comm::Describe(operation),
                     " of a group that it does not belong to"));
  }
  const int own = static_cast<int>(found - ranks.begin());
  auto collective = std::make_unique<MessageCollective>(std::move(operation),
                                                        std::move(ranks), own);
  const int64_t bytes = collective->scratch_bytes();
  if (bytes > static_cast<int64_t>(scratch_.size()))
    scratch_.resize(static_cast<size_t>(bytes));
  pending_.reserve(2 * collective->peers().size());
  return std::unique_ptr<Collective>(std::move(collective));
}

absl::Status MessageCommunicator::Send(const char* data, int64_t bytes,
                                       int to) {
  if (bytes == 0) return absl::OkStatus();
  PARTITA_ASSIGN_OR_RETURN(const Transport::Request request,
                           transport_->Send(data, bytes, to, stream()));
  pending_.push_back({request, to});
  return absl::OkStatus();
}

absl::Status MessageCommunicator::Receive(char* data, int64_t bytes, int from) {
  if (bytes == 0) return absl::OkStatus();
  PARTITA_ASSIGN_OR_RETURN(const Transport::Request request,
                           transport_->Receive(data, bytes, from, stream()));
  pending_.push_back({request, from});
  return absl::OkStatus();
}

absl::Status MessageCommunicator::TimeOut(const MessageCollective& collective,
                                          const std::vector<int>& ranks) {
  std::string names, more = " and made no progress";
  for (const int rank : ranks) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", Describe(rank));
    if (const int awaited = signs_.AwaitedBy(rank); awaited >= 0)
      absl::StrAppend(&more, "; ", Describe(rank), " itself waits for ",
                      Describe(awaited));
  }
  return DidNotArrive(names, collective,
                      options_.timeout * collective.operation().timeout_factor,
                      more);
}

MessageCommunicator::Wait MessageCommunicator::Waiting(
    const MessageCollective& collective, Clock::time_point since) const {
  Wait wait{&collective, {}, since};
  for (const Pending& pending : pending_) wait.ranks.push_back(pending.rank);
  std::sort(wait.ranks.begin(), wait.ranks.end());
  wait.ranks.erase(std::unique(wait.ranks.begin(), wait.ranks.end()),
                   wait.ranks.end());
  return wait;
}

absl::Status MessageCommunicator::Judge(const Wait& wait) {
  PARTITA_RETURN_IF_ERROR(signs_.Wait(wait.ranks, wait.since));
  const std::vector<int> silent = signs_.Silent(
      wait.ranks, wait.since,
      options_.timeout * wait.collective->operation().timeout_factor);
  return silent.empty() ? absl::OkStatus() : TimeOut(*wait.collective, silent);
}

void MessageCommunicator::Tell(Wait wait) {
  const std::lock_guard<std::mutex> lock(told_mutex_);
  told_ = std::move(wait);
}

absl::Status MessageCommunicator::CheckFirst() const {
  return transport_->failed()
             ? absl::AbortedError(absl::StrCat(Describe(rank()), " has failed"))
             : absl::OkStatus();
}

// Work at `beside` began waiting before this call, when no rank was asked yet,
// so the timeout counts from here.
absl::Status MessageCommunicator::WaitFor(Communicator& beside,
                                          const Done& done) {
  constexpr std::chrono::milliseconds kSlice(1);
  MessageCommunicator& other = static_cast<MessageCommunicator&>(beside);
  if (done(kSlice)) return absl::OkStatus();
  const Clock::time_point begin = Clock::now();
  absl::Status status = signs_.BeginWait();
  while (status.ok() && !done(kSlice)) {
    Wait wait;
    {
      const std::lock_guard<std::mutex> lock(other.told_mutex_);
      wait = other.told_;
    }
    if (wait.ranks.empty()) {  // it works; others may ask about this rank
      status = signs_.Work();
      continue;
    }
    wait.since = std::max(wait.since, begin);
    status = Judge(wait);
    if (status.ok()) status = transport_->Health();
  }
  if (!status.ok()) Fail(status);
  return status;
}

// Waits for all requests while some finish and the ranks of the others are
// working.
absl::Status MessageCommunicator::Finish(const MessageCollective& collective) {
  Clock::time_point since = Clock::now();
  bool waits = false;
  if (beside_) Tell(Waiting(collective, since));
  for (int idle = 0; !pending_.empty(); ++idle) {
    const size_t before = pending_.size();
    for (size_t i = 0; i < pending_.size();) {
      PARTITA_ASSIGN_OR_RETURN(const bool done,
                               transport_->Test(pending_[i].request));
      if (done) {
        pending_[i] = pending_.back();
        pending_.pop_back();
      } else {
        ++i;
      }
    }
    if (pending_.size() < before) {
      idle = 0;
      since = Clock::now();
      if (beside_)
        Tell(Waiting(collective, since));
      else
        PARTITA_RETURN_IF_ERROR(signs_.Work());
      continue;
    }
    PARTITA_RETURN_IF_ERROR(beside_ ? CheckFirst() : transport_->Health());
    if (idle < 200) continue;
    sched_yield();
    if (idle < 2000) continue;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (beside_) continue;
    if (!waits) PARTITA_RETURN_IF_ERROR(signs_.BeginWait());
    waits = true;
    PARTITA_RETURN_IF_ERROR(Judge(Waiting(collective, since)));
  }
  return absl::OkStatus();
}

absl::Status MessageCommunicator::Expect(Collective& transfer, void* output) {
  PARTITA_RETURN_IF_ERROR(failure_);
  const int from = transfer.ranks()[0];
  const int64_t bytes = transfer.operation().OutputBytes();
  expected_.emplace_back();
  Expectation& expectation = expected_.back();
  expectation.output = output;
  PARTITA_ASSIGN_OR_RETURN(
      expectation.head,
      transport_->Receive(&expectation.fingerprint,
                          sizeof expectation.fingerprint, from,
                          Transport::Stream::kTransfers));
  if (bytes == 0) return absl::OkStatus();
  PARTITA_ASSIGN_OR_RETURN(
      expectation.body,
      transport_->Receive(output, bytes, from, Transport::Stream::kTransfers));
  return absl::OkStatus();
}

absl::Status MessageCommunicator::FinishOne(MessageCollective& collective,
                                            Transport::Request request) {
  pending_.push_back({request, collective.ranks()[0]});
  return Finish(collective);
}

absl::Status MessageCommunicator::ReceiveTransfer(
    MessageCollective& collective, const Expectation& expectation) {
  PARTITA_RETURN_IF_ERROR(FinishOne(collective, expectation.head));
  if (expectation.fingerprint != collective.fingerprint())
    return WrongTransfer(collective, "another transfer");
  return expectation.body == nullptr ? absl::OkStatus()
                                     : FinishOne(collective, expectation.body);
}

absl::Status MessageCommunicator::Await(Collective& transfer, void* output) {
  PARTITA_RETURN_IF_ERROR(Progress());
  const auto found = std::find_if(
      expected_.begin(), expected_.end(),
      [&](const Expectation& other) { return other.output == output; });
  const absl::Status status =
      found == expected_.end()
          ? absl::InternalError(
                absl::StrCat("rank ", rank(), " awaits ",
                             comm::Describe(transfer.operation()),
                             ", which it does not expect"))
          : ReceiveTransfer(static_cast<MessageCollective&>(transfer), *found);
  if (status.ok()) {
    expected_.erase(found);
  } else {
    pending_.clear();
    Fail(status);
  }
  return status;
}

MemberChannel MessageCommunicator::ChannelOf(
    const MessageCollective& collective) {
  return {[this, &collective](const char* data, int64_t bytes, int member) {
            return Send(data, bytes,
                        collective.ranks()[static_cast<size_t>(member)]);
          },
          [this, &collective](char* data, int64_t bytes, int member) {
            return Receive(data, bytes,
                           collective.ranks()[static_cast<size_t>(member)]);
          },
          [this, &collective] { return Finish(collective); }};
}

absl::Status MessageCommunicator::Execute(MessageCollective& collective,
                                          const char* input, char* output) {
  switch (collective.operation().kind) {
    case Kind::kAllReduce:
      return AllReduce(collective, input, output, scratch_.data(),
                       ChannelOf(collective));
    case Kind::kTransfer:
      return outbox_.Send(input, collective.operation().InputBytes(),
                          collective.fingerprint(), collective.ranks()[1]);
    default:
      return Exchange(collective, input, output, scratch_.data(),
                      ChannelOf(collective));
  }
}

absl::Status MessageCommunicator::End(const absl::Status& status) {
  if (beside_) Tell({});
  if (!status.ok()) {
    pending_.clear();
    Fail(status);
  }
  return status;
}

absl::Status MessageCommunicator::Run(Collective& base, const void* input,
                                      void* output) {
  if (base.operation().kind == Kind::kTransfer && base.index() == 1) {
    PARTITA_RETURN_IF_ERROR(Expect(base, output));
    return Await(base, output);
  }
  PARTITA_RETURN_IF_ERROR(Progress());
  const absl::Status status =
      Execute(static_cast<MessageCollective&>(base),
              static_cast<const char*>(input), static_cast<char*>(output));
  return End(status);
}

absl::Status MessageCommunicator::RunRows(Collective& base, const void* input,
                                          const int64_t* to, void* output) {
  PARTITA_RETURN_IF_ERROR(Progress());
  const auto& collective = static_cast<const MessageCollective&>(base);
  return End(ExchangeRows(
      collective.operation(), collective.group_size(), collective.index(),
      {static_cast<const char*>(input), to}, static_cast<char*>(output),
      scratch_.data(), ChannelOf(collective)));
}

}  // namespace

std::unique_ptr<Communicator> MakeMessageCommunicator(
    std::unique_ptr<Transport> transport, const CommOptions& options) {
  return std::make_unique<MessageCommunicator>(
      std::make_shared<SharedTransport>(std::move(transport)), options, false);
}

}  // namespace partita::comm
