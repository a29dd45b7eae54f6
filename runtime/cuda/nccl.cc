// Collectives as work of streams. Operations on streams are remembered until
// they are done, so that a wait that times out can name the operation in
// progress.
#include "runtime/cuda/nccl.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/boxes.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/nccl_collective.h"
#include "runtime/cuda/nccl_groups.h"
#include "runtime/cuda/nccl_library.h"
#include "runtime/cuda/nccl_plan.h"
#include "runtime/cuda/nccl_rows.h"
#include "runtime/cuda/scratch.h"
#include "runtime/cuda/staging.h"

namespace partita::cuda {
namespace {

using comm::Box;
using Clock = std::chrono::steady_clock;

class NcclCommunicator : public comm::DeviceCommunicator {
 public:
  NcclCommunicator(comm::Communicator& base,
                   std::shared_ptr<const NcclLibrary> nccl,
                   std::shared_ptr<Context> context,
                   std::chrono::milliseconds timeout)
      : base_(base),
        nccl_(std::move(nccl)),
        context_(std::move(context)),
        timeout_(timeout),
        scratch_(context_, "the scratch of collectives"),
        scratch_beside_(context_, "the scratch of concurrent collectives"),
        staging_(context_),
        groups_(base, nccl_, timeout) {}
  NcclCommunicator(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override;

  absl::Status LoadKernels();
  absl::StatusOr<std::unique_ptr<comm::Collective>> Prepare(
      const comm::Operation& operation, const std::vector<int>& ranks,
      bool beside) override;
  absl::Status Enqueue(comm::Collective& collective, const void* input,
                       void* output, void* stream) override;
  absl::Status EnqueueRows(comm::Collective& collective, const void* input,
                           const void* to, void* output, void* stream) override;
  absl::Status Await(void* stream) override;

 private:
  Scratch& ScratchOf(bool beside) {
    return beside ? scratch_beside_ : scratch_;
  }
  absl::Status ExchangePieces(const NcclCollective& collective,
                              const char* input, char* output, CuStream stream);
  absl::Status Put(const NcclCollective& collective, const void* input,
                   void* output, CuStream stream);
  absl::Status MoveRows(const NcclCollective& collective, const RowMoves& moves,
                        const char* input, char* output, CuStream stream);
  absl::StatusOr<CuEvent> TakeEvent();
  absl::Status Remember(const NcclCollective& collective, CuStream stream);
  void ForgetDone();
  // State of the oldest operation in flight.
  CuResult QueryInFlight();
  // Text for messages: "; it stands at all_reduce 'h.0.mlp' of f32[8] among
  // ranks 0, 1", or empty.
  std::string WhereItStands() const;
  // Polls `ask` while it returns kCuNotReady. Fails like Await.
  absl::Status AwaitUntil(const std::function<CuResult()>& ask);
  // Connects two members by a first exchange, for which NCCL needs both.
  absl::Status Connect(const NcclCollective& transfer);

  comm::Communicator& base_;
  const std::shared_ptr<const NcclLibrary> nccl_;
  const std::shared_ptr<Context> context_;
  const std::chrono::milliseconds timeout_;
  std::unique_ptr<const Boxes> boxes_;
  // Operations on streams (`in_flight_`), in the order in which they were put
  // there, each with an event behind it. Operations in graphs (`captured_`):
  // each replay records their events anew.
  struct InFlight {
    std::shared_ptr<const std::string> description;
    CuEvent event;
  };
  std::deque<InFlight> in_flight_;
  std::vector<InFlight> captured_;
  bool replays_ = false;         // the last operation was captured
  std::vector<CuEvent> events_;  // unused
  Scratch scratch_, scratch_beside_;
  // Scratch blocks that graphs were captured with.
  std::vector<std::shared_ptr<const void>> held_;
  Staging staging_;    // of the numbers of rows
  NcclGroups groups_;  // destroyed before the scratch
  absl::Status failure_;
};

NcclCommunicator::~NcclCommunicator() {
  if (!context_->Enter().ok()) return;
  for (const InFlight& one : in_flight_) events_.push_back(one.event);
  for (const InFlight& one : captured_) events_.push_back(one.event);
  for (const CuEvent event : events_) context_->driver().DestroyEvent(event);
}

absl::Status NcclCommunicator::LoadKernels() {
  PARTITA_ASSIGN_OR_RETURN(boxes_, Boxes::Load(context_));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<comm::Collective>> NcclCommunicator::Prepare(
    const comm::Operation& operation, const std::vector<int>& ranks,
    bool beside) {
  PARTITA_RETURN_IF_ERROR(failure_);
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  const int index = static_cast<int>(
      std::find(ranks.begin(), ranks.end(), base_.rank()) - ranks.begin());
  std::optional<NcclPlan> plan =
      PlanNccl(operation, static_cast<int>(ranks.size()), index);
  if (!plan) return std::unique_ptr<comm::Collective>();
  const bool transfers = operation.kind == comm::Kind::kTransfer;
  bool joined = false;
  const absl::StatusOr<NcclComm> comm =
      groups_.Join(ranks, index,
                   transfers ? NcclGroups::Lane::kTransfers
                   : beside  ? NcclGroups::Lane::kBeside
                             : NcclGroups::Lane::kInPlace,
                   &joined);
  if (!comm.ok()) return failure_ = groups_.GiveUp(comm.status());
  // Operations that still use the scratch may wait for other ranks.
  if (plan->scratch_bytes > ScratchOf(beside).bytes())
    PARTITA_RETURN_IF_ERROR(AwaitUntil([this] { return QueryInFlight(); }));
  PARTITA_RETURN_IF_ERROR(ScratchOf(beside).Reserve(plan->scratch_bytes));
  std::unique_ptr<comm::Collective> counts;
  if (plan->kind == NcclPlan::Kind::kRows) {
    PARTITA_ASSIGN_OR_RETURN(
        counts,
        base_.Prepare(CountsOf(operation, static_cast<int>(ranks.size())),
                      ranks));
  }
  auto collective = std::make_unique<NcclCollective>(operation, ranks, index,
                                                     *std::move(plan), *comm,
                                                     beside, std::move(counts));
  if (transfers && !joined) PARTITA_RETURN_IF_ERROR(Connect(*collective));
  return std::unique_ptr<comm::Collective>(std::move(collective));
}

absl::Status NcclCommunicator::Connect(const NcclCollective& transfer) {
  const Driver& cuda = context_->driver();
  PARTITA_RETURN_IF_ERROR(scratch_.Reserve(1));
  CuStream stream = nullptr;
  PARTITA_RETURN_IF_ERROR(context_->Check(
      cuda.CreateStream(&stream, kCuStreamNonBlocking), "making a stream"));
  const NcclResult result =
      transfer.index() == 0
          ? nccl_->Send(scratch_.data(), 1, kNcclU8, 1, transfer.comm(), stream)
          : nccl_->Receive(scratch_.data(), 1, kNcclU8, 0, transfer.comm(),
                           stream);
  absl::Status status = groups_.Settle(transfer.comm(), result, [&] {
    return absl::StrCat("connecting the GPUs of ranks ",
                        absl::StrJoin(transfer.ranks(), " and "));
  });
  status = status.ok() ? Await(stream) : failure_ = groups_.GiveUp(status);
  cuda.DestroyStream(stream);
  return status;
}

absl::Status NcclCommunicator::ExchangePieces(const NcclCollective& collective,
                                              const char* input, char* output,
                                              CuStream stream) {
  const NcclPlan& plan = collective.plan();
  char* const scratch = ScratchOf(collective.beside()).data();
  const bool meets = !plan.sends.empty() || !plan.receives.empty();
  const auto name = [&] { return comm::Describe(collective.operation()); };
  // Within a group of calls, kNcclInProgress is not waited for.
  const auto check = [&](NcclResult result) {
    return result == kNcclSuccess || result == kNcclInProgress
               ? absl::OkStatus()
               : nccl_->Check(result, name());
  };
  if (meets) PARTITA_RETURN_IF_ERROR(check(nccl_->BeginGroup()));
  absl::Status status;
  for (const NcclPlan::Message& message : plan.sends)
    status.Update(
        check(nccl_->Send((message.in_scratch ? scratch : input) + message.at,
                          static_cast<size_t>(message.bytes), kNcclU8,
                          message.member, collective.comm(), stream)));
  for (const NcclPlan::Message& message : plan.receives)
    status.Update(check(
        nccl_->Receive((message.in_scratch ? scratch : output) + message.at,
                       static_cast<size_t>(message.bytes), kNcclU8,
                       message.member, collective.comm(), stream)));
  if (meets)
    status.Update(groups_.Settle(collective.comm(), nccl_->EndGroup(), name));
  PARTITA_RETURN_IF_ERROR(status);
  for (const Box& box : plan.unpacked)
    PARTITA_RETURN_IF_ERROR(boxes_->Copy(stream, box, scratch, output));
  PARTITA_RETURN_IF_ERROR(boxes_->Copy(stream, plan.local, input, output));
  const std::string fill = comm::FillOf(collective.operation());
  for (const Box& box : plan.blanks)
    PARTITA_RETURN_IF_ERROR(boxes_->Fill(stream, box, fill, output));
  return absl::OkStatus();
}

absl::Status NcclCommunicator::Enqueue(comm::Collective& base,
                                       const void* input, void* output,
                                       void* stream) {
  PARTITA_RETURN_IF_ERROR(failure_);
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  const NcclCollective& collective = static_cast<NcclCollective&>(base);
  const absl::Status status = Put(collective, input, output, stream);
  if (!status.ok() && collective.comm() != nullptr)
    return failure_ = groups_.GiveUp(status);
  PARTITA_RETURN_IF_ERROR(status);
  return Remember(collective, stream);
}

absl::Status NcclCommunicator::EnqueueRows(comm::Collective& base,
                                           const void* input, const void* to,
                                           void* output, void* stream) {
  // The host must know the numbers; earlier work may wait for other ranks.
  PARTITA_RETURN_IF_ERROR(Await(stream));
  const NcclCollective& collective = static_cast<NcclCollective&>(base);
  const comm::Operation& operation = collective.operation();
  std::vector<int64_t> numbers(static_cast<size_t>(operation.size));
  PARTITA_RETURN_IF_ERROR(
      staging_.ToHost(stream, numbers.data(), to,
                      operation.size * static_cast<int64_t>(sizeof(int64_t))));
  const absl::StatusOr<RowMoves> moves =
      PlanRowMoves(base_, *collective.counts(), operation,
                   collective.group_size(), collective.index(), numbers);
  // All members find the same.
  if (!moves.ok()) return failure_ = moves.status();
  const absl::Status status =
      MoveRows(collective, *moves, static_cast<const char*>(input),
               static_cast<char*>(output), stream);
  if (!status.ok()) return failure_ = groups_.GiveUp(status);
  return Remember(collective, stream);
}

absl::Status NcclCommunicator::MoveRows(const NcclCollective& collective,
                                        const RowMoves& moves,
                                        const char* input, char* output,
                                        CuStream stream) {
  const comm::Operation& operation = collective.operation();
  char* const scratch = ScratchOf(collective.beside()).data();
  int64_t* const index =
      reinterpret_cast<int64_t*>(scratch + collective.plan().index_at);
  const int64_t rows = static_cast<int64_t>(moves.sources.size()),
                row_bytes = comm::RowBytes(operation);
  const bool sends = operation.kind == comm::Kind::kSendRows;
  PARTITA_RETURN_IF_ERROR(
      staging_.ToDevice(stream, index, moves.sources.data(),
                        rows * static_cast<int64_t>(sizeof(int64_t))));
  if (sends)
    PARTITA_RETURN_IF_ERROR(
        boxes_->GatherRows(stream, index, rows, row_bytes, input, scratch));
  const comm::RowParts& from = sends ? moves.home : moves.held;
  const comm::RowParts& to = sends ? moves.held : moves.home;
  const char* const source = sends ? scratch : input;
  char* const target = sends ? output : scratch;
  if (collective.comm() != nullptr)
    PARTITA_RETURN_IF_ERROR(groups_.Settle(
        collective.comm(),
        ExchangeRows(*nccl_, collective.comm(), collective.index(), from, to,
                     source, target, stream),
        [&] { return comm::Describe(operation); }));
  const size_t own = static_cast<size_t>(collective.index());
  Box box;
  box.from = from.first[own];
  box.to = to.first[own];
  box.run = from.bytes[own];
  PARTITA_RETURN_IF_ERROR(boxes_->Copy(stream, box, source, target));
  if (!sends)
    return boxes_->GatherRows(stream, index, rows, row_bytes, scratch, output);
  box.to = moves.held.rows * row_bytes;
  box.run = operation.OutputBytes() - box.to;
  return boxes_->Fill(stream, box, comm::FillOf(operation), output);
}

absl::Status NcclCommunicator::Put(const NcclCollective& collective,
                                   const void* input, void* output,
                                   CuStream stream) {
  const comm::Operation& operation = collective.operation();
  const NcclPlan& plan = collective.plan();
  const Driver& cuda = context_->driver();
  char* const scratch = ScratchOf(collective.beside()).data();
  if (collective.comm() == nullptr && plan.kind != NcclPlan::Kind::kPieces) {
    // In a group of one rank, these operations copy the input.
    const size_t bytes = static_cast<size_t>(operation.OutputBytes());
    if (input == output || bytes == 0) return absl::OkStatus();
    return context_->Check(
        cuda.Copy(reinterpret_cast<CuPointer>(output),
                  reinterpret_cast<CuPointer>(input), bytes, stream),
        "copying on the GPU");
  }
  if (plan.clear)
    PARTITA_RETURN_IF_ERROR(context_->Check(
        cuda.Fill(reinterpret_cast<CuPointer>(scratch), 0,
                  static_cast<size_t>(plan.scratch_bytes), stream),
        "clearing the scratch"));
  for (const Box& box : plan.packed)
    PARTITA_RETURN_IF_ERROR(boxes_->Copy(stream, box, input, scratch));
  const auto check = [&](NcclResult result) {
    return groups_.Settle(collective.comm(), result,
                          [&] { return comm::Describe(operation); });
  };
  const auto elements = [&](int64_t bytes) {
    return static_cast<size_t>(bytes / base::SizeOf(operation.dtype));
  };
  switch (plan.kind) {
    case NcclPlan::Kind::kAllReduce:
      return check(nccl_->AllReduce(
          input, output, elements(operation.OutputBytes()), plan.type,
          plan.reduction, collective.comm(), stream));
    case NcclPlan::Kind::kReduceScatter:
      return check(
          nccl_->ReduceScatter(plan.scratch_bytes > 0 ? scratch : input, output,
                               elements(operation.OutputBytes()), plan.type,
                               plan.reduction, collective.comm(), stream));
    case NcclPlan::Kind::kAllGather:
      return check(nccl_->AllGather(input, output,
                                    static_cast<size_t>(operation.InputBytes()),
                                    kNcclU8, collective.comm(), stream));
    case NcclPlan::Kind::kBroadcast:
      return check(nccl_->Broadcast(
          input, output, static_cast<size_t>(operation.OutputBytes()), kNcclU8,
          operation.root, collective.comm(), stream));
    case NcclPlan::Kind::kPieces:
      break;
    case NcclPlan::Kind::kRows:
      return absl::InternalError("rows need their destinations");
  }
  return ExchangePieces(collective, static_cast<const char*>(input),
                        static_cast<char*>(output), stream);
}

absl::StatusOr<CuEvent> NcclCommunicator::TakeEvent() {
  CuEvent event = nullptr;
  if (events_.empty()) {
    PARTITA_RETURN_IF_ERROR(context_->Check(
        context_->driver().CreateEvent(&event, kCuEventNoTiming),
        "making an event"));
    return event;
  }
  event = events_.back();
  events_.pop_back();
  return event;
}

absl::Status NcclCommunicator::Remember(const NcclCollective& collective,
                                        CuStream stream) {
  const Driver& cuda = context_->driver();
  constexpr char kMarking[] = "marking the end of an operation";
  int capturing = 0;
  PARTITA_RETURN_IF_ERROR(
      context_->Check(cuda.IsCapturing(stream, &capturing),
                      "asking whether a step is being captured"));
  PARTITA_ASSIGN_OR_RETURN(const CuEvent event, TakeEvent());
  replays_ = capturing != 0;
  if (!replays_) {
    in_flight_.push_back({collective.description(), event});
    return context_->Check(cuda.RecordEvent(event, stream), kMarking);
  }
  captured_.push_back({collective.description(), event});
  std::shared_ptr<const void> held = ScratchOf(collective.beside()).Hold();
  if (collective.plan().scratch_bytes > 0 &&
      std::find(held_.begin(), held_.end(), held) == held_.end())
    held_.push_back(std::move(held));
  return context_->Check(
      cuda.RecordEventWithFlags(event, stream, kCuEventRecordExternal),
      kMarking);
}

void NcclCommunicator::ForgetDone() {
  while (!in_flight_.empty() &&
         context_->driver().AskEvent(in_flight_.front().event) == kCuSuccess) {
    events_.push_back(in_flight_.front().event);
    in_flight_.pop_front();
  }
}

// The event of an operation in a graph is not ready from the start of the
// replay until the operation has ended.
std::string NcclCommunicator::WhereItStands() const {
  const auto is_in_flight = [&](const InFlight& one) {
    return context_->driver().AskEvent(one.event) == kCuNotReady;
  };
  for (const InFlight& one : in_flight_)
    if (is_in_flight(one))
      return absl::StrCat("; it stands at ", *one.description);
  for (size_t i = 0; i < captured_.size(); ++i)
    if (is_in_flight(captured_[i]))
      return absl::StrCat("; it stands at ", *captured_[i].description,
                          ", operation ", i + 1, " of ", captured_.size(),
                          " among GPUs in the replayed step");
  if (captured_.empty() || !replays_) return "";
  return absl::StrCat("; it has passed the last of the ", captured_.size(),
                      " operations among GPUs in the replayed step, ",
                      *captured_.back().description);
}

absl::Status NcclCommunicator::Await(void* stream) {
  PARTITA_RETURN_IF_ERROR(failure_);
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  return AwaitUntil([&] { return context_->driver().AskStream(stream); });
}

CuResult NcclCommunicator::QueryInFlight() {
  ForgetDone();
  return in_flight_.empty()
             ? kCuSuccess
             : context_->driver().AskEvent(in_flight_.front().event);
}

absl::Status NcclCommunicator::AwaitUntil(
    const std::function<CuResult()>& ask) {
  const Clock::time_point begin = Clock::now();
  for (int round = 0;; ++round) {
    const CuResult result = ask();
    if (result == kCuSuccess) ForgetDone();
    if (result != kCuNotReady)
      return context_->Check(result, "waiting for the GPU");
    // Short steps end within the first rounds, which poll without sleeping.
    if (round < 1000) continue;
    absl::Status status = base_.Progress();
    if (status.ok()) status = groups_.Check();
    if (status.ok() && Clock::now() - begin > timeout_)
      status = absl::DeadlineExceededError(absl::StrCat(
          "the GPU of ", base_.Describe(base_.rank()),
          " did not end its work within ", timeout_.count(),
          " ms: it waits for the GPU of another rank, or its steps are long; "
          "give it more time with --timeout"));
    if (!status.ok())
      return failure_ = groups_.GiveUp(absl::Status(
                 status.code(),
                 absl::StrCat(std::string(status.message()), WhereItStands())));
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>> MakeNcclCommunicator(
    comm::Communicator& base, const NcclOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(std::shared_ptr<const NcclLibrary> nccl,
                           NcclLibrary::Open(options.nccl));
  PARTITA_ASSIGN_OR_RETURN(std::shared_ptr<const Driver> driver,
                           Driver::Open(options.driver));
  PARTITA_ASSIGN_OR_RETURN(std::shared_ptr<Context> context,
                           Context::Open(std::move(driver), options.ordinal));
  auto communicator = std::make_unique<NcclCommunicator>(
      base, std::move(nccl), std::move(context), options.comm.timeout);
  PARTITA_RETURN_IF_ERROR(communicator->LoadKernels());
  return std::unique_ptr<comm::DeviceCommunicator>(std::move(communicator));
}

absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>> AgreeOnNccl(
    comm::Communicator& base, const NcclOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(
      const std::vector<std::string> found,
      base.GatherTexts(NcclLibrary::IsInstalled(options.nccl) ? "NCCL" : "",
                       "libraries of GPUs"));
  if (std::count(found.begin(), found.end(), "") > 0)
    return std::unique_ptr<comm::DeviceCommunicator>();
  absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>> made =
      MakeNcclCommunicator(base, options);
  PARTITA_RETURN_IF_ERROR(base.Agree(made.status()));
  return made;
}

}  // namespace partita::cuda
