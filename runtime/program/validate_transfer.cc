// Executes the transfers of all entries without data: sends never wait,
// receives wait for their send. Only the order of each entry's transfers
// matters.
#include "runtime/program/validate_transfer.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/mesh.h"
#include "runtime/program/types.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

struct Transfer {
  bool sends;
  int64_t peer;
  DType dtype;
  const flatbuffers::Vector<int64_t>* shape;
  const AxisList* axes;
  int function = -1;
  int64_t instruction = -1;
};

std::optional<Transfer> TransferOf(const Instruction& instruction) {
  if (const Send* send = instruction.operation_as_Send())
    return Transfer{
        true, send->peer(), send->dtype(), send->shape(), send->axes(), -1, -1};
  if (const Receive* receive = instruction.operation_as_Receive())
    return Transfer{false,
                    receive->peer(),
                    receive->dtype(),
                    receive->shape(),
                    receive->axes(),
                    -1,
                    -1};
  return std::nullopt;
}

bool SameAxes(const AxisList* a, const AxisList* b) {
  if (SizeOrZero(a) != SizeOrZero(b)) return false;
  for (unsigned i = 0; i < SizeOrZero(a); ++i) {
    const AxisPart &one = *a->Get(i), &other = *b->Get(i);
    if (one.axis() != other.axis() || one.pre() != other.pre() ||
        one.size() != other.size())
      return false;
  }
  return true;
}

bool SameType(const Transfer& a, const Transfer& b) {
  return a.dtype == b.dtype && ToVector(a.shape) == ToVector(b.shape);
}

std::string TypeOf(const Transfer& transfer) {
  return base::TypeName(ToBase(transfer.dtype), ToVector(transfer.shape));
}

// The transfers of functions, calls included.
class TransferLists {
 public:
  explicit TransferLists(const Program& program)
      : program_(program),
        sites_(static_cast<size_t>(SizeOrZero(program.functions()))),
        counts_(sites_.size(), -1) {}

  int64_t CountOf(int function) {
    int64_t& count = counts_[static_cast<size_t>(function)];
    if (count >= 0) return count;
    int64_t sum = 0;
    const auto* body =
        program_.functions()->Get(static_cast<unsigned>(function))->body();
    for (int64_t i = 0; i < SizeOrZero(body); ++i) {
      const Instruction& instruction = *body->Get(static_cast<unsigned>(i));
      int64_t more = 0;
      if (const Call* call = instruction.operation_as_Call())
        more = CountOf(call->function());
      else if (TransferOf(instruction))
        more = 1;
      if (more > 0) sites_[static_cast<size_t>(function)].push_back(i);
      sum += more;
    }
    return counts_[static_cast<size_t>(function)] = sum;
  }

  // Appends them in order; requires that CountOf(function) was called.
  void Append(int function, std::vector<Transfer>& list) const {
    const auto* body =
        program_.functions()->Get(static_cast<unsigned>(function))->body();
    for (const int64_t i : sites_[static_cast<size_t>(function)]) {
      const Instruction& instruction = *body->Get(static_cast<unsigned>(i));
      if (const Call* call = instruction.operation_as_Call()) {
        Append(call->function(), list);
        continue;
      }
      list.push_back(*TransferOf(instruction));
      list.back().function = function;
      list.back().instruction = i;
    }
  }

 private:
  const Program& program_;
  // Instructions that are transfers, or calls with transfers.
  std::vector<std::vector<int64_t>> sites_;
  std::vector<int64_t> counts_;
};

class Execution {
 public:
  Execution(const Program& program, std::vector<std::vector<Transfer>> lists)
      : program_(program), lists_(std::move(lists)), at_(lists_.size(), 0) {}

  absl::Status Run() {
    for (size_t i = 0; i < lists_.size(); ++i) ready_.push_back(i);
    while (!ready_.empty()) {
      const size_t entry = ready_.back();
      ready_.pop_back();
      PARTITA_RETURN_IF_ERROR(Advance(entry));
    }
    PARTITA_RETURN_IF_ERROR(CheckDone());
    for (const auto& [pair, queue] : sent_) {
      if (queue.empty()) continue;
      return Bad(absl::StrCat(Where(pair.first, *queue.front()),
                              ": what it sends to entry ", pair.second,
                              ", that one does not receive"));
    }
    return absl::OkStatus();
  }

 private:
  // "function 'main', instruction 4"
  std::string Place(const Transfer& transfer) const {
    return absl::StrCat("function '",
                        program_.functions()
                            ->Get(static_cast<unsigned>(transfer.function))
                            ->name()
                            ->str(),
                        "', instruction ", transfer.instruction);
  }
  std::string Where(size_t entry, const Transfer& transfer) const {
    return absl::StrCat("entry ", entry, ", ", Place(transfer));
  }

  // The next transfer of an entry, null at its end.
  const Transfer* Next(size_t entry) const {
    return at_[entry] < lists_[entry].size() ? &lists_[entry][at_[entry]]
                                             : nullptr;
  }

  absl::Status Advance(size_t entry) {
    while (const Transfer* transfer = Next(entry)) {
      const size_t peer = static_cast<size_t>(transfer->peer);
      if (peer == entry)
        return Bad(absl::StrCat(Where(entry, *transfer),
                                ": its peer is the entry itself"));
      if (transfer->sends) {
        sent_[{entry, peer}].push_back(transfer);
        const Transfer* waiting = Next(peer);
        if (waiting != nullptr && !waiting->sends &&
            static_cast<size_t>(waiting->peer) == entry)
          ready_.push_back(peer);
      } else {
        auto& queue = sent_[{peer, entry}];
        if (queue.empty()) return absl::OkStatus();
        if (!SameType(*queue.front(), *transfer))
          return Bad(absl::StrCat(Where(entry, *transfer), ": it receives ",
                                  TypeOf(*transfer), ", but ",
                                  Where(peer, *queue.front()), " sends ",
                                  TypeOf(*queue.front())));
        queue.pop_front();
      }
      ++at_[entry];
    }
    return absl::OkStatus();
  }

  // Among stuck entries, reports one that waits for an entry that has ended,
  // since this says most.
  absl::Status CheckDone() const {
    std::optional<size_t> stuck;
    for (size_t i = 0; i < lists_.size(); ++i) {
      const Transfer* transfer = Next(i);
      if (transfer == nullptr) continue;
      if (!stuck) stuck = i;
      if (Next(static_cast<size_t>(transfer->peer)) == nullptr)
        return Bad(absl::StrCat(Where(i, *transfer),
                                ": it receives what entry ", transfer->peer,
                                " does not send"));
    }
    if (!stuck) return absl::OkStatus();
    const Transfer& transfer = *Next(*stuck);
    const size_t peer = static_cast<size_t>(transfer.peer);
    const Transfer& other = *Next(peer);
    return Bad(absl::StrCat(Where(*stuck, transfer), ": it waits for entry ",
                            peer, ", which at ", Place(other),
                            " waits for entry ", other.peer,
                            ": none of them can go on"));
  }

  const Program& program_;
  const std::vector<std::vector<Transfer>> lists_;
  std::vector<size_t> at_;
  std::vector<size_t> ready_;
  // By sender and receiver.
  std::map<std::pair<size_t, size_t>, std::deque<const Transfer*>> sent_;
};

}  // namespace

absl::Status ValidateTransfer(const Program& program,
                              const Instruction& instruction) {
  const Transfer transfer = *TransferOf(instruction);
  const std::string name = transfer.sends ? "send: " : "receive: ";
  if (SizeOrZero(program.pipeline()) == 0)
    return Bad(name + "the program has no pipeline");
  if (!IsAligned(transfer.axes) || !SameAxes(transfer.axes, program.pipeline()))
    return Bad(name + "its axes are not those of the pipeline");
  if (transfer.peer < 0 || transfer.peer >= SizeOrZero(program.entries()))
    return Bad(absl::StrCat(name, "peer ", transfer.peer, " of ",
                            SizeOrZero(program.entries()), " entries"));
  if (transfer.dtype < DType::MIN || transfer.dtype > DType::MAX)
    return Bad(absl::StrCat(name, "unknown element type ",
                            static_cast<int>(transfer.dtype)));
  if (!IsAligned(transfer.shape)) return Bad(name + "a shape is not aligned");
  if (SizeOrZero(transfer.shape) > kMaxRank)
    return Bad(absl::StrCat(name, "a shape of ", SizeOrZero(transfer.shape),
                            " dimensions"));
  const auto bytes =
      base::ByteCount(ToBase(transfer.dtype), ToVector(transfer.shape));
  if (!bytes) return Bad(name + "its shape is negative or too big");
  const int written = transfer.sends ? 0 : 1;
  if (SizeOrZero(instruction.operands()) != 1 ||
      instruction.outputs() != written)
    return Bad(absl::StrCat(name, "expected 1 operand, ", written,
                            " of them written, found ",
                            SizeOrZero(instruction.operands()), ", ",
                            instruction.outputs(), " of them written"));
  const int64_t found = instruction.operands()->Get(0)->bytes();
  if (found >= *bytes) return absl::OkStatus();
  return Bad(absl::StrCat(name, "its operand needs ", *bytes, " bytes, found ",
                          found));
}

absl::Status ValidateTransfers(const Program& program) {
  TransferLists all(program);
  int64_t sum = 0;
  for (unsigned i = 0; i < program.entries()->size(); ++i) {
    const Entry& entry = *program.entries()->Get(i);
    sum += all.CountOf(entry.main());
    if (sum > kMaxTransfers)
      return Bad(absl::StrCat("entries send and receive more than ",
                              kMaxTransfers, " times"));
    if (entry.init() >= 0 && all.CountOf(entry.init()) > 0)
      return Bad(absl::StrCat("entry ", i,
                              ", init: it sends or receives, which only main "
                              "may"));
  }
  std::vector<std::vector<Transfer>> lists(program.entries()->size());
  for (unsigned i = 0; i < program.entries()->size(); ++i)
    all.Append(program.entries()->Get(i)->main(), lists[i]);
  return Execution(program, std::move(lists)).Run();
}

}  // namespace partita::program
