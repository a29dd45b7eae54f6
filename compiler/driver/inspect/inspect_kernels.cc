// Counts how often each function runs, then adds up its launches.
#include "compiler/driver/inspect/inspect_kernels.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/program/types.h"

namespace partita::driver {
namespace {

struct Row {
  const program::Kernel* kernel = nullptr;
  double launches = 0, bytes = 0;
};

// Visits each function once, so that calls of calls take no longer.
class RunCounts {
 public:
  explicit RunCounts(const program::Program& program)
      : program_(program),
        runs_(program.functions()->size(), 0),
        seen_(program.functions()->size(), false) {
    for (const program::Entry* entry : *program.entries()) add(entry->main());
    for (const program::Entry* entry : *program.entries())
      runs_[entry->main()] += 1;
    for (auto function = order_.rbegin(); function != order_.rend(); ++function)
      for (const program::Call* call : callsOf(*function))
        runs_[call->function()] += runs_[*function];
  }

  double of(unsigned function) const { return runs_[function]; }

 private:
  std::vector<const program::Call*> callsOf(int function) const {
    std::vector<const program::Call*> calls;
    const auto* body = program_.functions()->Get(function)->body();
    for (unsigned i = 0; i < program::SizeOrZero(body); ++i)
      if (const auto* call = body->Get(i)->operation_as_Call())
        calls.push_back(call);
    return calls;
  }

  // Appends callees, then the function. Calls have no cycle.
  void add(int function) {
    if (seen_[function]) return;
    seen_[function] = true;
    for (const program::Call* call : callsOf(function)) add(call->function());
    order_.push_back(function);
  }

  const program::Program& program_;
  std::vector<double> runs_;  // by function
  std::vector<bool> seen_;
  std::vector<int> order_;
};

double bytesOf(const program::Instruction& instruction,
               const program::Launch& launch) {
  double bytes = -static_cast<double>(launch.unread_bytes());
  for (unsigned i = 0; i < program::SizeOrZero(instruction.operands()); ++i)
    bytes += static_cast<double>(instruction.operands()->Get(i)->bytes());
  return bytes;
}

}  // namespace

llvm::json::Array kernelsIn(const program::Program& program) {
  std::vector<Row> rows;
  for (unsigned i = 0; i < program::SizeOrZero(program.kernels()); ++i)
    rows.push_back({program.kernels()->Get(i)});
  const RunCounts runs(program);
  for (unsigned f = 0; f < program.functions()->size(); ++f) {
    const auto* body = program.functions()->Get(f)->body();
    for (unsigned i = 0; i < program::SizeOrZero(body); ++i) {
      const program::Instruction& instruction = *body->Get(i);
      const program::Launch* launch = instruction.operation_as_Launch();
      if (launch == nullptr) continue;
      Row& row = rows[launch->kernel()];
      row.launches += runs.of(f);
      row.bytes += runs.of(f) * bytesOf(instruction, *launch);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.bytes > b.bytes;
  });
  llvm::json::Array list;
  for (const Row& row : rows) {
    const auto* label = row.kernel->label();
    list.push_back(llvm::json::Object{
        {"label", (label ? label : row.kernel->name())->str()},
        {"symbol", row.kernel->name()->str()},
        {"launches", row.launches},
        {"traffic_bytes", row.bytes}});
  }
  return list;
}

}  // namespace partita::driver
