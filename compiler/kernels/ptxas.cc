// Runs ptxas and reads its report.
#include "compiler/kernels/ptxas.h"

#include <regex>
#include <sstream>
#include <utility>

#include "compiler/kernels/assemble_ptx.h"

namespace partita::kernels {
namespace {

void readReport(Assembled& result) {
  const std::regex entry("Compiling entry function '([^']+)'"),
      spills("([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads"),
      registers("Used ([0-9]+) registers"), shared("([0-9]+) bytes smem");
  std::istringstream lines(result.report);
  Assembled::Kernel* kernel = nullptr;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, entry))
      kernel = &result.kernels[found[1]];
    if (kernel == nullptr) continue;
    if (std::regex_search(line, found, spills))
      kernel->spilled_bytes = std::stoi(found[1]) + std::stoi(found[2]);
    if (std::regex_search(line, found, registers))
      kernel->registers = std::stoi(found[1]);
    if (std::regex_search(line, found, shared))
      kernel->shared_bytes = std::stoi(found[1]);
  }
}

}  // namespace

bool hasPtxas() { return findPtxas().has_value(); }

Assembled assemble(const std::string& ptx, const std::string& chip) {
  AssembledPtx assembled = assemblePtx(*findPtxas(), ptx, chip);
  Assembled result;
  result.ok = assembled.ok;
  result.report = std::move(assembled.report);
  readReport(result);
  return result;
}

}  // namespace partita::kernels
