// Greedy, in order: a launch joins those before it or begins anew.
#include "compiler/emit/join_launches.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "runtime/program/validate.h"

namespace partita::emit {
namespace {

using program::Buffer;
using program::InstructionT;
using program::LaunchT;
using program::Space;

// So that what a launch carries stays small.
constexpr size_t kMostPieces = 256;

class Joined {
 public:
  explicit Joined(const std::vector<int64_t>& memory) : memory_(memory) {}

  bool accepts(const InstructionT& next) const {
    if (pieces_.empty()) return true;
    if (next.operands.size() > program::kMaxPieceOperands) return false;
    const LaunchT& first = *pieces_.front()->operation.AsLaunch();
    const LaunchT& launch = *next.operation.AsLaunch();
    if (pieces_.size() == kMostPieces || launch.kernel != first.kernel ||
        launch.scratch_bytes != first.scratch_bytes || !launch.grid.empty())
      return false;
    for (const Buffer& written : outputs(next))
      if (touches(reads_, written) || touches(writes_, written)) return false;
    for (const Buffer& read : inputs(next))
      if (touches(writes_, read)) return false;
    return true;
  }

  void add(std::unique_ptr<InstructionT> next) {
    for (const Buffer& read : inputs(*next)) reads_.push_back(read);
    for (const Buffer& written : outputs(*next)) writes_.push_back(written);
    pieces_.push_back(std::move(next));
  }

  // What has been added, as one instruction.
  std::unique_ptr<InstructionT> take() {
    std::unique_ptr<InstructionT> result = std::move(pieces_.front());
    if (pieces_.size() > 1) {
      LaunchT& launch = *result->operation.AsLaunch();
      launch.ranges = {launch.range};
      for (size_t i = 1; i < pieces_.size(); ++i) {
        const LaunchT& piece = *pieces_[i]->operation.AsLaunch();
        launch.ranges.push_back(piece.range);
        launch.range += piece.range;
        launch.grain = std::max(launch.grain, piece.grain);
        result->outputs += pieces_[i]->outputs;
        for (auto& type : pieces_[i]->output_types)
          result->output_types.push_back(std::move(type));
      }
      result->name += " and " + std::to_string(pieces_.size() - 1) + " more";
      result->operands = reads_;
      result->operands.insert(result->operands.end(), writes_.begin(),
                              writes_.end());
    }
    pieces_.clear(), reads_.clear(), writes_.clear();
    return result;
  }

  bool empty() const { return pieces_.empty(); }

 private:
  static std::vector<Buffer> inputs(const InstructionT& instruction) {
    return {instruction.operands.begin(),
            instruction.operands.end() - instruction.outputs};
  }
  static std::vector<Buffer> outputs(const InstructionT& instruction) {
    return {instruction.operands.end() - instruction.outputs,
            instruction.operands.end()};
  }

  bool touches(const std::vector<Buffer>& buffers, const Buffer& other) const {
    return std::any_of(
        buffers.begin(), buffers.end(),
        [&](const Buffer& buffer) { return overlap(buffer, other); });
  }

  bool overlap(const Buffer& a, const Buffer& b) const {
    if (a.space() != b.space()) return false;
    if (a.space() == Space::argument)
      return memory_[a.value()] == memory_[b.value()];
    return a.value() < b.value() + b.bytes() &&
           b.value() < a.value() + a.bytes();
  }

  const std::vector<int64_t>& memory_;
  std::vector<std::unique_ptr<InstructionT>> pieces_;
  std::vector<Buffer> reads_, writes_;
};

}  // namespace

void joinLaunches(program::FunctionT& function,
                  const std::vector<int64_t>& memory) {
  std::vector<std::unique_ptr<InstructionT>> body;
  Joined joined(memory);
  const auto flush = [&] {
    if (!joined.empty()) body.push_back(joined.take());
  };
  for (std::unique_ptr<InstructionT>& instruction : function.body) {
    if (instruction->operation.type != program::Operation::Launch) {
      flush();
      body.push_back(std::move(instruction));
      continue;
    }
    if (!joined.accepts(*instruction)) flush();
    joined.add(std::move(instruction));
  }
  flush();
  function.body = std::move(body);
}

}  // namespace partita::emit
