// Computes which arena bytes are alive. A value lives from the instruction that
// writes it to the last one that reads it before it is overwritten.
#include "compiler/simulator/memory.h"

#include <algorithm>
#include <map>

#include "runtime/program/loop.h"
#include "runtime/program/types.h"

namespace partita::simulator {
namespace {

using program::Buffer;
using program::Instruction;
using program::SizeOrZero;
using program::Space;

const program::Entry& EntryOf(const program::Program& program, int entry) {
  return *program.entries()->Get(static_cast<unsigned>(entry));
}

const program::Function& MainOf(const program::Program& program, int entry) {
  return *program.functions()->Get(
      static_cast<unsigned>(EntryOf(program, entry).main()));
}

// The values of one frame, by their first byte. Values do not overlap.
class Lifetimes {
 public:
  explicit Lifetimes(size_t instructions) : changes_(instructions + 1, 0) {}

  void Read(int64_t begin, int64_t bytes, size_t when) {
    for (auto at = FirstOver(begin);
         at != values_.end() && at->first < begin + bytes; ++at)
      at->second.last = when;
  }

  void Write(int64_t begin, int64_t bytes, size_t when) {
    auto at = FirstOver(begin);
    // An in-place update keeps the value alive.
    if (at != values_.end() && at->first == begin &&
        at->second.end == begin + bytes && at->second.last == when)
      return;
    while (at != values_.end() && at->first < begin + bytes) {
      Close(at->first, at->second);
      at = values_.erase(at);
    }
    if (bytes > 0) values_[begin] = {begin + bytes, when, when};
  }

  // Bytes alive at each instruction: [instruction].
  std::vector<int64_t> Finish() {
    for (const auto& [begin, value] : values_) Close(begin, value);
    std::vector<int64_t> alive;
    int64_t sum = 0;
    for (size_t i = 0; i + 1 < changes_.size(); ++i)
      alive.push_back(sum += changes_[i]);
    return alive;
  }

 private:
  struct Value {
    int64_t end = 0;
    size_t first = 0, last = 0;
  };

  std::map<int64_t, Value>::iterator FirstOver(int64_t begin) {
    auto at = values_.upper_bound(begin);
    if (at != values_.begin() && std::prev(at)->second.end > begin) --at;
    return at;
  }

  void Close(int64_t begin, const Value& value) {
    changes_[value.first] += value.end - begin;
    changes_[value.last + 1] -= value.end - begin;
  }

  std::map<int64_t, Value> values_;
  std::vector<int64_t> changes_;
};

}  // namespace

DeviceMemory MemoryOf(const program::Program& program, int entry) {
  const program::Entry& described = EntryOf(program, entry);
  DeviceMemory memory;
  auto visit = [](const flatbuffers::Vector<int32_t>* list, auto each) {
    for (unsigned i = 0; i < SizeOrZero(list); ++i)
      each(static_cast<unsigned>(list->Get(i)));
  };
  // Counts each parameter of init and of main once.
  std::vector<bool> held(static_cast<size_t>(SizeOrZero(program.parameters())));
  auto hold = [&](unsigned index) {
    if (index < held.size()) held[index] = true;
  };
  visit(described.init_parameters(), hold);
  visit(described.main_globals(), hold);
  visit(described.main_updates(), hold);
  for (unsigned i = 0; i < held.size(); ++i) {
    if (!held[i]) continue;
    const program::Parameter& parameter = *program.parameters()->Get(i);
    (parameter.host()                                    ? memory.host
     : parameter.kind() == program::ParameterKind::state ? memory.states
                                                         : memory.parameters) +=
        program::BytesOf(*parameter.type());
  }
  if (program.state_files() != nullptr && described.memory() != nullptr) {
    memory.host = described.memory()->host();
    memory.files = described.memory()->files();
  }
  for (unsigned i = 0; i < SizeOrZero(described.derived()); ++i)
    memory.derived += program::BytesOf(*described.derived()->Get(i));
  visit(described.inputs(), [&](unsigned i) {
    memory.ports += program::BytesOf(*program.inputs()->Get(i)->type());
  });
  visit(described.outputs(), [&](unsigned i) {
    memory.ports += program::BytesOf(*program.outputs()->Get(i)->type());
  });
  memory.arena = MainOf(program, entry).frame_bytes();
  if (described.memory() != nullptr && program::IsForGpus(program))
    memory.reserved = std::max<int64_t>(
        0, program::TotalOf(*described.memory()) - memory.total());
  return memory;
}

std::vector<int64_t> AliveBytes(const program::Program& program, int entry) {
  const auto* body = MainOf(program, entry).body();
  const size_t count = static_cast<size_t>(SizeOrZero(body));
  Lifetimes lifetimes(count);
  // By token: started collectives, whose inputs are busy.
  std::map<int, const Instruction*> busy;
  for (size_t i = 0; i < count; ++i) {
    const Instruction& instruction = *body->Get(static_cast<unsigned>(i));
    if (const program::Collective* started =
            instruction.operation_as_Collective();
        started != nullptr && started->token() > 0)
      busy[started->token()] = &instruction;
    if (const program::Await* await = instruction.operation_as_Await()) {
      const auto* operands = busy.at(await->token())->operands();
      for (unsigned k = 0; k + 1 < operands->size(); ++k)
        if (operands->Get(k)->space() == Space::frame)
          lifetimes.Read(operands->Get(k)->value(), operands->Get(k)->bytes(),
                         i);
    }
    const int64_t operands = SizeOrZero(instruction.operands());
    const int64_t inputs = operands - instruction.outputs();
    for (int64_t k = 0; k < operands; ++k) {
      const Buffer& buffer =
          *instruction.operands()->Get(static_cast<unsigned>(k));
      if (buffer.space() != Space::frame) continue;
      if (k < inputs)
        lifetimes.Read(buffer.value(), buffer.bytes(), i);
      else
        lifetimes.Write(buffer.value(), buffer.bytes(), i);
    }
    if (const program::Call* call = instruction.operation_as_Call())
      lifetimes.Write(call->frame_offset(),
                      program::FrameBytesOf(program, instruction), i);
  }
  return lifetimes.Finish();
}

}  // namespace partita::simulator
