// Walks each function once.
#include "compiler/driver/inspect/inspect_overlap.h"

#include <map>
#include <string>

namespace partita::driver {
namespace {

struct Started {
  const program::Instruction* instruction;
  int64_t at;
  std::map<std::string, int> calls;
};

std::string textOf(const std::map<std::string, int>& calls) {
  std::string text;
  for (const auto& [name, times] : calls)
    text += (text.empty() ? "" : ", ") +
            (times > 1 ? std::to_string(times) + " x " : "") + name;
  return text;
}

llvm::json::Object rowOf(const program::Function& function,
                         const Started& started, int64_t awaited) {
  const program::Instruction& instruction = *started.instruction;
  return llvm::json::Object{
      {"name", instruction.name() ? instruction.name()->str() : std::string()},
      {"function", function.name()->str()},
      {"collective", program::EnumNameCollectiveKind(
                         instruction.operation_as_Collective()->kind())},
      {"bytes", instruction.operands()->Get(0)->bytes()},
      {"started", started.at},
      {"awaited", awaited},
      {"beside", textOf(started.calls)}};
}

void addRows(const program::Program& program, const program::Function& function,
             llvm::json::Array& rows) {
  std::map<int, Started> busy;  // by token
  for (unsigned i = 0; function.body() && i < function.body()->size(); ++i) {
    const program::Instruction& instruction = *function.body()->Get(i);
    if (const auto* collective = instruction.operation_as_Collective()) {
      if (collective->token() > 0)
        busy[collective->token()] = {&instruction, i, {}};
    } else if (const auto* call = instruction.operation_as_Call()) {
      const std::string name =
          program.functions()
              ->Get(static_cast<unsigned>(call->function()))
              ->name()
              ->str();
      for (auto& [token, started] : busy) ++started.calls[name];
    } else if (instruction.operation_as_Gemm() ||
               instruction.operation_as_GroupedGemm()) {
      for (auto& [token, started] : busy) ++started.calls["product"];
    } else if (instruction.operation_as_Conv()) {
      for (auto& [token, started] : busy) ++started.calls["convolution"];
    } else if (const auto* await = instruction.operation_as_Await()) {
      rows.push_back(rowOf(function, busy.at(await->token()), i));
      busy.erase(await->token());
    }
  }
}

}  // namespace

llvm::json::Array overlappedIn(const program::Program& program) {
  llvm::json::Array rows;
  for (const program::Function* function : *program.functions())
    addRows(program, *function, rows);
  return rows;
}

}  // namespace partita::driver
