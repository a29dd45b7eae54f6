// Walks once over a function, tracks collectives in flight, and checks that
// nothing uses their buffers.
#include "runtime/program/validate_started.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/loop.h"
#include "runtime/program/types.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

// Bytes of a frame or the data section, or a whole argument: different
// arguments do not overlap.
struct Place {
  Space space;
  int64_t begin, end;

  bool Overlaps(const Place& other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
};

struct Started {
  int64_t instruction;
  std::vector<Place> inputs;
  Place output;
};

class StartedChecker {
 public:
  StartedChecker(const Program& program, const Function& function,
                 std::vector<int> memory)
      : program_(program), function_(function), memory_(std::move(memory)) {}

  absl::Status Run() {
    for (int64_t i = 0; i < SizeOrZero(function_.body()); ++i) {
      const Instruction& instruction =
          *function_.body()->Get(static_cast<unsigned>(i));
      const absl::Status status = Visit(i, instruction);
      if (!status.ok())
        return Bad(absl::StrCat("function '", function_.name()->str(),
                                "', instruction ", i, ": ", status.message()));
    }
    if (busy_.empty()) return absl::OkStatus();
    const auto& [token, started] = *busy_.begin();
    return Bad(absl::StrCat("function '", function_.name()->str(),
                            "', instruction ", started.instruction, ": token ",
                            token, " is started and not awaited"));
  }

 private:
  absl::Status Visit(int64_t index, const Instruction& instruction) {
    if (const Await* await = instruction.operation_as_Await())
      return Finish(*await, instruction);
    if (!busy_.empty()) PARTITA_RETURN_IF_ERROR(CheckFree(instruction));
    const Collective* collective = instruction.operation_as_Collective();
    if (collective == nullptr || collective->token() == 0)
      return absl::OkStatus();
    if (collective->token() < 0)
      return Bad(absl::StrCat("token ", collective->token(), " is negative"));
    if (!seen_.insert(collective->token()).second)
      return Bad(
          absl::StrCat("token ", collective->token(), " is started twice"));
    if (static_cast<int64_t>(busy_.size()) >= kMaxStarted)
      return Bad(absl::StrCat("more than ", kMaxStarted,
                              " collectives are started and not awaited"));
    // The output is the last operand; destinations of rows are an input, too.
    const unsigned last = instruction.operands()->size() - 1;
    Started started = {index, {}, PlaceOf(*instruction.operands()->Get(last))};
    for (unsigned i = 0; i < last; ++i)
      started.inputs.push_back(PlaceOf(*instruction.operands()->Get(i)));
    busy_[collective->token()] = std::move(started);
    return absl::OkStatus();
  }

  absl::Status Finish(const Await& await, const Instruction& instruction) {
    if (SizeOrZero(instruction.operands()) != 0 || instruction.outputs() != 0)
      return Bad("await: expected no operands");
    if (busy_.erase(await.token()) == 1) return absl::OkStatus();
    return Bad(absl::StrCat("token ", await.token(), " is awaited, but ",
                            seen_.count(await.token()) > 0
                                ? "was awaited before"
                                : "was not started before"));
  }

  Place PlaceOf(const Buffer& buffer) const {
    if (buffer.space() != Space::argument)
      return {buffer.space(), buffer.value(), buffer.value() + buffer.bytes()};
    const int64_t argument = memory_[static_cast<size_t>(buffer.value())];
    return {Space::argument, argument, argument + 1};
  }

  absl::Status CheckFree(const Instruction& instruction) const {
    const int64_t count = SizeOrZero(instruction.operands());
    for (int64_t i = 0; i < count; ++i) {
      const bool writes = i >= count - instruction.outputs();
      PARTITA_RETURN_IF_ERROR(CheckFree(
          absl::StrCat("operand ", i),
          PlaceOf(*instruction.operands()->Get(static_cast<unsigned>(i))),
          writes));
    }
    const Call* call = instruction.operation_as_Call();
    if (call == nullptr) return absl::OkStatus();
    const int64_t frame = FrameBytesOf(program_, instruction);
    return CheckFree(
        "the callee's frame",
        {Space::frame, call->frame_offset(), call->frame_offset() + frame},
        true);
  }

  absl::Status CheckFree(const std::string& what, const Place& place,
                         bool writes) const {
    for (const auto& [token, started] : busy_) {
      const bool output = place.Overlaps(started.output);
      const bool changes_input =
          writes &&
          std::any_of(started.inputs.begin(), started.inputs.end(),
                      [&](const Place& in) { return place.Overlaps(in); });
      if (!output && !changes_input) continue;
      return Bad(absl::StrCat(what, writes ? " writes" : " reads", " the ",
                              output ? "output" : "input", " of token ", token,
                              ", which instruction ", started.instruction,
                              " starts and nothing has awaited"));
    }
    return absl::OkStatus();
  }

  const Program& program_;
  const Function& function_;
  // The argument whose memory each argument shares, or itself.
  const std::vector<int> memory_;
  std::set<int> seen_;
  std::map<int, Started> busy_;  // by token
};

std::vector<int> OwnMemory(const Function& function) {
  std::vector<int> memory(static_cast<size_t>(function.arguments()));
  std::iota(memory.begin(), memory.end(), 0);
  return memory;
}

// An update is in the memory of its parameter's argument.
std::vector<int> MemoryOf(const Entry& entry, const Function& main) {
  const int64_t updates = SizeOrZero(entry.main_updates());
  std::map<int, int> arguments;  // by parameter
  for (int64_t i = 0; i < SizeOrZero(entry.main_globals()); ++i)
    arguments.emplace(entry.main_globals()->Get(static_cast<unsigned>(i)),
                      static_cast<int>(SizeOrZero(entry.inputs()) + i));
  std::vector<int> memory = OwnMemory(main);
  for (int64_t i = 0; i < updates; ++i) {
    const auto argument =
        arguments.find(entry.main_updates()->Get(static_cast<unsigned>(i)));
    if (argument != arguments.end())
      memory[memory.size() - static_cast<size_t>(updates - i)] =
          argument->second;
  }
  return memory;
}

}  // namespace

absl::Status ValidateStarted(const Program& program, const Function& function) {
  return StartedChecker(program, function, OwnMemory(function)).Run();
}

absl::Status ValidateStartedUpdates(const Program& program) {
  // Entries may share a main; this bounds the time to check a malicious file.
  int64_t operands = 0;
  for (unsigned i = 0; i < program.entries()->size(); ++i) {
    const Entry& entry = *program.entries()->Get(i);
    const Function& main =
        *program.functions()->Get(static_cast<unsigned>(entry.main()));
    const int64_t updates = SizeOrZero(entry.main_updates());
    if (updates == 0) continue;
    for (int64_t j = 0; j < SizeOrZero(main.body()); ++j)
      operands +=
          1 +
          SizeOrZero(main.body()->Get(static_cast<unsigned>(j))->operands());
    if (operands > kMaxOperands)
      return Bad(absl::StrCat("mains of entries have more than ", kMaxOperands,
                              " operands"));
    PARTITA_RETURN_IF_ERROR(
        StartedChecker(program, main, MemoryOf(entry, main)).Run());
  }
  return absl::OkStatus();
}

}  // namespace partita::program
