// Follows parameters through calls to the kernels that read them.
#include "runtime/executor/uses.h"

#include <map>

#include "runtime/program/types.h"

namespace partita::executor {
namespace {

// For each argument of each function, computes once whether a kernel reads it.
class KernelReads {
 public:
  explicit KernelReads(const program::Program& program) : program_(program) {}

  const std::vector<bool>& Of(int index) {
    const auto found = reads_.find(index);
    if (found != reads_.end()) return found->second;
    const program::Function& function =
        *program_.functions()->Get(static_cast<unsigned>(index));
    std::vector<bool> reads(static_cast<size_t>(function.arguments()), false);
    for (int64_t i = 0; i < program::SizeOrZero(function.body()); ++i) {
      const program::Instruction& instruction =
          *function.body()->Get(static_cast<unsigned>(i));
      const program::Call* call = instruction.operation_as_Call();
      const bool launch =
          instruction.operation_type() == program::Operation::Launch;
      if (!launch && call == nullptr) continue;
      const std::vector<bool> callee =
          call != nullptr ? Of(call->function()) : std::vector<bool>();
      for (int64_t j = 0; j < program::SizeOrZero(instruction.operands());
           ++j) {
        const program::Buffer& buffer =
            *instruction.operands()->Get(static_cast<unsigned>(j));
        if (buffer.space() != program::Space::argument) continue;
        if (launch || callee[static_cast<size_t>(j)])
          reads[static_cast<size_t>(buffer.value())] = true;
      }
    }
    return reads_.emplace(index, std::move(reads)).first->second;
  }

 private:
  const program::Program& program_;
  std::map<int, std::vector<bool>> reads_;
};

}  // namespace

std::vector<Weights::Use> FindUses(const program::Program& program,
                                   const program::Entry& entry) {
  const size_t parameters =
      static_cast<size_t>(program::SizeOrZero(program.parameters()));
  std::vector<Weights::Use> uses(parameters);
  KernelReads reads(program);
  const auto mark = [&](int function, size_t argument, int global) {
    if (static_cast<size_t>(global) >= parameters) return;
    Weights::Use& use = uses[static_cast<size_t>(global)];
    use.used = true;
    use.aligned = use.aligned || reads.Of(function)[argument];
  };
  const size_t inputs =
      static_cast<size_t>(program::SizeOrZero(entry.inputs()));
  for (size_t i = 0;
       i < static_cast<size_t>(program::SizeOrZero(entry.main_globals()));
       ++i) {
    mark(entry.main(), inputs + i,
         entry.main_globals()->Get(static_cast<unsigned>(i)));
  }
  for (int64_t i = 0; i < program::SizeOrZero(entry.main_updates()); ++i) {
    Weights::Use& use = uses[static_cast<size_t>(
        entry.main_updates()->Get(static_cast<unsigned>(i)))];
    use.used = use.aligned = use.updated = true;
  }
  if (entry.init() < 0) return uses;
  for (size_t i = 0;
       i < static_cast<size_t>(program::SizeOrZero(entry.init_parameters()));
       ++i) {
    mark(entry.init(), i,
         entry.init_parameters()->Get(static_cast<unsigned>(i)));
  }
  return uses;
}

}  // namespace partita::executor
