// Divides steps by the windows of the state store. A launch of many pieces, as
// the update of all parameters is, runs window by window.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/bound_program.h"

namespace partita::executor {

std::vector<std::vector<size_t>> BoundProgram::OperandsByPiece(
    const Step& step) const {
  const size_t pieces = step.pieces == nullptr ? 1 : step.pieces->ranges.size();
  const size_t count = static_cast<size_t>(step.count);
  const size_t outputs =
      step.pieces == nullptr ? 0 : static_cast<size_t>(step.pieces->outputs);
  const size_t inputs = count / pieces - outputs;
  std::vector<std::vector<size_t>> operands(pieces);
  for (size_t piece = 0; piece < pieces; ++piece) {
    for (size_t i = 0; i < inputs; ++i)
      operands[piece].push_back(step.first + piece * inputs + i);
    for (size_t i = 0; i < outputs; ++i)
      operands[piece].push_back(step.first + pieces * inputs + piece * outputs +
                                i);
  }
  return operands;
}

BoundProgram::StatePart BoundProgram::PartOf(
    const Step& step, size_t first_piece, size_t end_piece,
    const std::vector<std::vector<size_t>>& operands) const {
  StatePart part;
  if (first_piece == 0 && end_piece == operands.size()) return part;
  const std::vector<int64_t>& ranges = step.pieces->ranges;
  const auto outputs = static_cast<size_t>(step.pieces->outputs);
  part.pieces.ranges.assign(
      ranges.begin() + static_cast<std::ptrdiff_t>(first_piece),
      ranges.begin() + static_cast<std::ptrdiff_t>(end_piece));
  part.pieces.outputs = step.pieces->outputs;
  part.shape = step.shape;
  part.shape.range = std::accumulate(part.pieces.ranges.begin(),
                                     part.pieces.ranges.end(), int64_t{0});
  for (const bool written : {false, true})
    for (size_t piece = first_piece; piece < end_piece; ++piece) {
      const std::vector<size_t>& all = operands[piece];
      const size_t inputs = all.size() - outputs;
      for (size_t i = written ? inputs : 0; i < (written ? all.size() : inputs);
           ++i)
        part.operands.push_back(all[i]);
    }
  return part;
}

absl::Status BoundProgram::PlanStates() {
  if (context_.states == nullptr) return absl::OkStatus();
  struct Unit {
    const Step* step;
    size_t piece;
  };
  std::vector<Unit> units;
  std::vector<std::vector<int>> states;  // of each unit
  std::map<const Step*, std::vector<std::vector<size_t>>> operands;
  for (const Step& step : steps_) {
    const std::vector<std::vector<size_t>> pieces = OperandsByPiece(step);
    for (size_t piece = 0; piece < pieces.size(); ++piece) {
      std::set<int> used;
      for (const size_t operand : pieces[piece])
        if (buffer_states_[operand] >= 0) used.insert(buffer_states_[operand]);
      if (used.empty() && operands.count(&step) == 0) continue;
      // Their memory is in use before or after their step.
      if (step.started > 0 || step.kind == program::Operation::Send ||
          step.kind == program::Operation::Receive)
        return absl::FailedPreconditionError(
            absl::StrCat("optimizer states cannot be in files: ",
                         DescribeStep(&step - steps_.data()),
                         " exchanges one of them; leave the folder for them "
                         "out, or compile with offload: optimizer"));
      units.push_back({&step, piece});
      states.emplace_back(used.begin(), used.end());
      operands[&step] = pieces;
    }
  }
  if (units.empty()) return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(context_.states->Plan(states, context_.device));
  for (size_t i = 0; i < units.size(); ++i) {
    const int window = context_.states->WindowOf(i);
    for (const size_t operand : operands[units[i].step][units[i].piece])
      if (buffer_states_[operand] >= 0)
        buffers_[operand] =
            context_.states->AddressOf(window, buffer_states_[operand]);
  }
  // Consecutive pieces of a step in one window are a part. Pieces before the
  // first one with states belong to the first part.
  for (size_t begin = 0; begin < units.size();) {
    const Step* const step = units[begin].step;
    const int window = context_.states->WindowOf(begin);
    size_t end = begin;
    while (end < units.size() && units[end].step == step &&
           context_.states->WindowOf(end) == window)
      ++end;
    std::vector<StatePart>& parts = state_parts_[step - steps_.data()];
    const size_t first = parts.empty() ? 0 : units[begin].piece;
    parts.push_back(
        PartOf(*step, first, units[end - 1].piece + 1, operands[step]));
    parts.back().window = window;
    begin = end;
  }
  return absl::OkStatus();
}

// Before ranks wait for each other's transfers.
absl::Status BoundProgram::PlanStatesTogether() {
  const absl::Status planned = PlanStates();
  return context_.together && context_.communicator != nullptr
             ? context_.communicator->Agree(planned)
             : planned;
}

absl::Status BoundProgram::RunParts(device::Stream& stream, const Step& step,
                                    const std::vector<StatePart>& parts) {
  for (const StatePart& part : parts) {
    PARTITA_RETURN_IF_ERROR(EnterWindow(stream, part.window));
    if (part.operands.empty()) {
      PARTITA_RETURN_IF_ERROR(RunOperation(stream, step));
      continue;
    }
    std::vector<void*> buffers;
    for (const size_t operand : part.operands)
      buffers.push_back(buffers_[operand]);
    PARTITA_RETURN_IF_ERROR(context_.device.LaunchEach(
        stream, *step.kernel, part.shape, part.pieces, buffers.data(),
        static_cast<int>(buffers.size())));
  }
  return absl::OkStatus();
}

absl::Status BoundProgram::EnterWindow(device::Stream& stream, int window) {
  if (window == window_) return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(LeaveWindow(stream));
  window_ = window;
  return context_.states->Enter(window);
}

absl::Status BoundProgram::LeaveWindow(device::Stream& stream) {
  if (window_ < 0) return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(context_.device.Synchronize(stream));
  context_.states->Leave(window_);
  window_ = -1;
  return absl::OkStatus();
}

}  // namespace partita::executor
