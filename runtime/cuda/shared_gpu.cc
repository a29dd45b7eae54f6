// The last rank to arrive at a meeting puts the work on its own stream. That
// stream first waits for the events of all members, which mark that their
// memory is ready. The other members' streams then wait for the event behind
// the work. A stream only waits for work that is already on a stream, so only
// hosts can wait for each other, and their waits have timeouts.
#include "runtime/cuda/shared_gpu.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/box_kernels.h"
#include "runtime/cuda/boxes.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/meetings.h"

namespace partita::cuda {
namespace {

using comm::Box;
using comm::Kind;
using Clock = std::chrono::steady_clock;

// Polling interval of the GPU.
constexpr std::chrono::microseconds kPause{20};

// A pool of events that all ranks share.
class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  explicit EventPool(std::shared_ptr<Context> context)
      : context_(std::move(context)) {}
  EventPool(const EventPool&) = delete;
  ~EventPool() {
    if (!context_->Enter().ok()) return;
    for (const CuEvent event : unused_) context_->driver().DestroyEvent(event);
  }

  // Returns a CuEvent that marks the work on the stream so far. The context
  // must be current on the calling thread.
  absl::StatusOr<std::shared_ptr<void>> Record(CuStream stream) {
    CuEvent event = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!unused_.empty()) {
        event = unused_.back();
        unused_.pop_back();
      }
    }
    const Driver& cuda = context_->driver();
    if (event == nullptr)
      PARTITA_RETURN_IF_ERROR(context_->Check(
          cuda.CreateEvent(&event, kCuEventNoTiming), "making an event"));
    std::shared_ptr<void> owned(
        event, [pool = shared_from_this()](void* unused) {
          const std::lock_guard<std::mutex> lock(pool->mutex_);
          pool->unused_.push_back(unused);
        });
    PARTITA_RETURN_IF_ERROR(context_->Check(cuda.RecordEvent(event, stream),
                                            "marking the end of an operation"));
    return owned;
  }

 private:
  const std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::vector<CuEvent> unused_;
};

class SharedCollective : public comm::Collective {
 public:
  using End = std::function<void(SharedCollective&)>;
  SharedCollective(comm::Operation operation, std::vector<int> ranks, int index,
                   Meetings::Lane lane, End end)
      : Collective(std::move(operation), std::move(ranks), index),
        lane(lane),
        end(std::move(end)),
        alone(group_size() == 1 || this->operation().kind == Kind::kAllSlice),
        description(std::make_shared<const std::string>(
            absl::StrCat(comm::Describe(this->operation()), " among ranks ",
                         absl::StrJoin(this->ranks(), ", ")))) {}

  ~SharedCollective() override { end(*this); }

  const Meetings::Lane lane;
  const End end;
  const bool alone;  // no other rank takes part
  const std::shared_ptr<const std::string> description;
  // Enqueued but not joined operations. `done` is the event to wait for.
  struct InFlight {
    std::shared_ptr<Meetings::Meeting> meeting;  // null: `alone`
    std::shared_ptr<void> done;
  };
  std::deque<InFlight> in_flight;
};

}  // namespace

class SharedGpu {
 public:
  SharedGpu(int ranks, const SharedGpuOptions& options)
      : options_(options), meetings_(ranks, options.comm.timeout) {}

  const SharedGpuOptions& options() const { return options_; }
  Meetings& meetings() { return meetings_; }
  // All ranks have the same context, so the pool uses the first rank's.
  std::shared_ptr<EventPool> Events(const std::shared_ptr<Context>& context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<EventPool> events = events_.lock();
    if (events == nullptr) {
      events = std::make_shared<EventPool>(context);
      events_ = events;
    }
    return events;
  }

 private:
  const SharedGpuOptions options_;
  Meetings meetings_;
  std::mutex mutex_;
  std::weak_ptr<EventPool> events_;  // lives as long as a rank uses it
};

namespace {

class SharedCommunicator : public comm::DeviceCommunicator {
 public:
  SharedCommunicator(std::shared_ptr<SharedGpu> gpu, comm::Communicator& base,
                     std::shared_ptr<Context> context,
                     std::unique_ptr<const Boxes> boxes)
      : gpu_(std::move(gpu)),
        base_(base),
        context_(std::move(context)),
        boxes_(std::move(boxes)),
        events_(gpu_->Events(context_)) {
    gpu_->meetings().Join(base_);
  }
  SharedCommunicator(const SharedCommunicator&) = delete;
  ~SharedCommunicator() override { gpu_->meetings().Leave(base_.rank()); }

  bool MeetsOnHosts() const override { return true; }
  absl::StatusOr<std::unique_ptr<comm::Collective>> Prepare(
      const comm::Operation& operation, const std::vector<int>& ranks,
      bool beside) override;
  absl::Status Enqueue(comm::Collective& base, const void* input, void* output,
                       void* stream) override;
  absl::Status Join(comm::Collective& base, void* stream) override;
  absl::Status Await(void* stream) override;

 private:
  using Postings = std::vector<Meetings::Posting>;

  // Waits until no other rank uses the collective's buffers.
  void End(SharedCollective& collective);
  bool WaitUntilReached(const std::shared_ptr<void>& event,
                        Clock::time_point limit);

  // Runs the operation for all members.
  absl::StatusOr<std::shared_ptr<void>> Hold(const SharedCollective& collective,
                                             const Postings& postings,
                                             CuStream stream) const;
  absl::Status Put(const SharedCollective& collective, const Postings& postings,
                   CuStream stream) const;
  // Copies or reduces the parts that one member receives.
  absl::Status PutPieces(const SharedCollective& collective,
                         const Postings& postings, int receiver,
                         CuStream stream) const;
  absl::Status WaitFor(const std::shared_ptr<void>& event,
                       CuStream stream) const {
    return context_->Check(context_->driver().WaitEvent(stream, event.get(), 0),
                           "waiting for an event");
  }
  // Drops the reached events at the front of `ahead_`. True if there were any.
  bool DropReached();

  const std::shared_ptr<SharedGpu> gpu_;
  comm::Communicator& base_;
  const std::shared_ptr<Context> context_;
  const std::unique_ptr<const Boxes> boxes_;
  const std::shared_ptr<EventPool> events_;
  // Events that this rank's streams wait for, in enqueue order.
  struct Mark {
    std::shared_ptr<const std::string> description;
    std::shared_ptr<void> done;
  };
  std::deque<Mark> ahead_;
  bool gave_up_ = false;  // a wait for the GPU timed out
};

absl::StatusOr<std::unique_ptr<comm::Collective>> SharedCommunicator::Prepare(
    const comm::Operation& operation, const std::vector<int>& ranks,
    bool beside) {
  if (ranks.size() > static_cast<size_t>(kMaxMembers) ||
      comm::MovesRows(operation.kind))
    return std::unique_ptr<comm::Collective>();
  const int index = static_cast<int>(
      std::find(ranks.begin(), ranks.end(), base_.rank()) - ranks.begin());
  return std::unique_ptr<comm::Collective>(std::make_unique<SharedCollective>(
      operation, ranks, index,
      operation.kind == Kind::kTransfer ? Meetings::Lane::kTransfers
      : beside                          ? Meetings::Lane::kBeside
                                        : Meetings::Lane::kInPlace,
      [this](SharedCollective& collective) { End(collective); }));
}

absl::Status SharedCommunicator::PutPieces(const SharedCollective& collective,
                                           const Postings& postings,
                                           int receiver,
                                           CuStream stream) const {
  const comm::Operation& operation = collective.operation();
  const int n = collective.group_size();
  char* const output = postings[static_cast<size_t>(receiver)].output;
  if (operation.kind == Kind::kReduceScatter) {
    std::vector<const char*> inputs;
    for (const Meetings::Posting& one : postings) inputs.push_back(one.input);
    PARTITA_RETURN_IF_ERROR(boxes_->Reduce(
        stream, operation.reduction, operation.dtype,
        comm::PieceOf(operation, n, receiver, receiver), inputs, {output}));
  } else {
    for (int sender = 0; sender < n; ++sender) {
      const char* const input = postings[static_cast<size_t>(sender)].input;
      const Box box = comm::PieceOf(operation, n, receiver, sender);
      if (box.IsOneRun() && input + box.from == output + box.to) continue;
      PARTITA_RETURN_IF_ERROR(boxes_->Copy(stream, box, input, output));
    }
  }
  const std::string fill = comm::FillOf(operation);
  for (const Box& box : comm::BlanksOf(operation, n, receiver))
    PARTITA_RETURN_IF_ERROR(boxes_->Fill(stream, box, fill, output));
  return absl::OkStatus();
}

absl::Status SharedCommunicator::Put(const SharedCollective& collective,
                                     const Postings& postings,
                                     CuStream stream) const {
  const comm::Operation& operation = collective.operation();
  if (operation.kind == Kind::kTransfer) {
    Box all;
    all.run = operation.InputBytes();
    return boxes_->Copy(stream, all, postings[0].input, postings[1].output);
  }
  if (operation.kind == Kind::kAllReduce) {
    Box all;
    all.run = operation.InputBytes();
    std::vector<const char*> inputs;
    std::vector<char*> outputs;
    for (const Meetings::Posting& one : postings) {
      inputs.push_back(one.input);
      outputs.push_back(one.output);
    }
    return boxes_->Reduce(stream, operation.reduction, operation.dtype, all,
                          inputs, outputs);
  }
  if (operation.kind == Kind::kAllSlice)
    return PutPieces(collective, postings, collective.index(), stream);
  for (int receiver = 0; receiver < collective.group_size(); ++receiver) {
    PARTITA_RETURN_IF_ERROR(gpu_->meetings().Check(base_.rank()));
    PARTITA_RETURN_IF_ERROR(PutPieces(collective, postings, receiver, stream));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<void>> SharedCommunicator::Hold(
    const SharedCollective& collective, const Postings& postings,
    CuStream stream) const {
  for (size_t i = 0; i < postings.size(); ++i)
    if (static_cast<int>(i) != collective.index())
      PARTITA_RETURN_IF_ERROR(WaitFor(postings[i].ready, stream));
  PARTITA_RETURN_IF_ERROR(gpu_->meetings().Check(base_.rank()));
  absl::Status status = Put(collective, postings, stream);
  if (status.ok()) {
    absl::StatusOr<std::shared_ptr<void>> done = events_->Record(stream);
    if (done.ok()) return done;
    status = done.status();
  }
  // There is no event for the others to wait for, so wait until the work
  // already on the stream ends before they learn of the failure.
  const Clock::time_point limit =
      Clock::now() + gpu_->options().comm.timeout / 2;
  while (context_->driver().AskStream(stream) == kCuNotReady &&
         Clock::now() < limit)
    std::this_thread::sleep_for(kPause);
  return status;
}

absl::Status SharedCommunicator::Enqueue(comm::Collective& base,
                                         const void* input, void* output,
                                         void* stream) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  SharedCollective& collective = static_cast<SharedCollective&>(base);
  Meetings::Posting posting;
  posting.input = static_cast<const char*>(input);
  posting.output = static_cast<char*>(output);
  posting.fingerprint = collective.fingerprint();
  posting.description = collective.description;
  PARTITA_ASSIGN_OR_RETURN(posting.ready, events_->Record(stream));
  if (collective.alone) {
    Postings postings(static_cast<size_t>(collective.group_size()));
    postings[static_cast<size_t>(collective.index())] = std::move(posting);
    PARTITA_RETURN_IF_ERROR(Put(collective, postings, stream));
    if (collective.lane == Meetings::Lane::kInPlace) return absl::OkStatus();
    PARTITA_ASSIGN_OR_RETURN(std::shared_ptr<void> done,
                             events_->Record(stream));
    collective.in_flight.push_back({nullptr, std::move(done)});
    return absl::OkStatus();
  }
  PARTITA_ASSIGN_OR_RETURN(
      std::shared_ptr<Meetings::Meeting> meeting,
      gpu_->meetings().Arrive(base_, collective.lane, collective.ranks(),
                              std::move(posting),
                              [&](const Postings& postings) {
                                return Hold(collective, postings, stream);
                              }));
  collective.in_flight.push_back({std::move(meeting), nullptr});
  return collective.lane == Meetings::Lane::kInPlace ? Join(base, stream)
                                                     : absl::OkStatus();
}

absl::Status SharedCommunicator::Join(comm::Collective& base, void* stream) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  SharedCollective& collective = static_cast<SharedCollective&>(base);
  if (collective.in_flight.empty())
    return absl::InternalError(
        absl::StrCat(*collective.description,
                     ": expected an enqueued operation to join, found none"));
  // On an error the entry stays in the queue, for End.
  const SharedCollective::InFlight& first = collective.in_flight.front();
  std::shared_ptr<void> done = first.done;
  if (first.meeting != nullptr) {
    PARTITA_ASSIGN_OR_RETURN(
        done, gpu_->meetings().Await(base_, *first.meeting,
                                     collective.operation().timeout_factor));
  }
  collective.in_flight.pop_front();
  ahead_.push_back({collective.description, done});
  return WaitFor(done, stream);
}

bool SharedCommunicator::DropReached() {
  bool passed = false;
  while (!ahead_.empty() &&
         context_->driver().AskEvent(ahead_.front().done.get()) == kCuSuccess) {
    ahead_.pop_front();
    passed = true;
  }
  return passed;
}

// All work that the stream waits for is on streams of this GPU, so it ends
// unless a kernel hangs. The timeout restarts whenever the GPU passes a
// collective, so a long step may take longer.
absl::Status SharedCommunicator::Await(void* stream) {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  const std::chrono::milliseconds timeout = gpu_->options().comm.timeout;
  Clock::time_point begin = Clock::now();
  for (int round = 0;; ++round) {
    const CuResult result = context_->driver().AskStream(stream);
    if (result != kCuNotReady) {
      ahead_.clear();
      return context_->Check(result, "waiting for the GPU");
    }
    // Short steps end within the first rounds, which poll without sleeping.
    if (round < 1000) continue;
    PARTITA_RETURN_IF_ERROR(base_.Progress());
    if (DropReached()) begin = Clock::now();
    if (Clock::now() - begin > timeout) {
      const absl::Status status = absl::DeadlineExceededError(absl::StrCat(
          "the GPU that rank ", base_.rank(),
          " shares with others made no progress within ", timeout.count(),
          " ms; it has ",
          ahead_.empty()
              ? "passed all of the rank's collectives"
              : absl::StrCat("not finished ", *ahead_.front().description),
          "; if its steps are long, give it more time with --timeout"));
      gpu_->meetings().Fail(status);
      gave_up_ = true;
      return status;
    }
    std::this_thread::sleep_for(kPause);
  }
}

// None of this rank's streams waits for operations that were not joined, so the
// host does.
void SharedCommunicator::End(SharedCollective& collective) {
  if (collective.in_flight.empty() && ahead_.empty()) return;
  if (!context_->Enter().ok()) return;
  const Clock::time_point limit = Clock::now() + gpu_->options().comm.timeout;
  for (SharedCollective::InFlight& one : collective.in_flight) {
    if (one.meeting != nullptr) {
      auto held = gpu_->meetings().Quit(base_.rank(), *one.meeting);
      if (!held.ok()) continue;
      one.done = *std::move(held);
    }
    WaitUntilReached(one.done, limit);
  }
  collective.in_flight.clear();
  while (!ahead_.empty() && WaitUntilReached(ahead_.front().done, limit))
    ahead_.pop_front();
}

// Waits on the host for the event. True if the GPU reaches it or fails; false
// after `limit`.
bool SharedCommunicator::WaitUntilReached(const std::shared_ptr<void>& event,
                                          Clock::time_point limit) {
  while (context_->driver().AskEvent(event.get()) == kCuNotReady) {
    gave_up_ |= Clock::now() > limit;
    if (gave_up_) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

std::shared_ptr<SharedGpu> MakeSharedGpu(int ranks,
                                         const SharedGpuOptions& options) {
  return std::make_shared<SharedGpu>(ranks, options);
}

absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>
MakeSharedCommunicator(std::shared_ptr<SharedGpu> gpu,
                       comm::Communicator& base) {
  const SharedGpuOptions& options = gpu->options();
  PARTITA_ASSIGN_OR_RETURN(std::shared_ptr<const Driver> driver,
                           Driver::Open(options.driver));
  PARTITA_ASSIGN_OR_RETURN(std::shared_ptr<Context> context,
                           Context::Open(std::move(driver), options.ordinal));
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<const Boxes> boxes,
                           Boxes::Load(context));
  return std::unique_ptr<comm::DeviceCommunicator>(
      std::make_unique<SharedCommunicator>(
          std::move(gpu), base, std::move(context), std::move(boxes)));
}

}  // namespace partita::cuda
