// Runs ptxas and reads its report.
#include "compiler/kernels/ptxas.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

namespace partita::kernels {
namespace {

std::string ptxasPath() {
  const char* named = std::getenv("PARTITA_PTXAS");
  return named ? named : "/usr/local/cuda/bin/ptxas";
}

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

bool hasPtxas() { return access(ptxasPath().c_str(), X_OK) == 0; }

Assembled assemble(const std::string& ptx, const std::string& chip,
                   const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string path =
      std::string(folder ? folder : "/tmp") + "/" + name + ".ptx";
  std::ofstream(path) << ptx;
  const std::string command =
      ptxasPath() + " -v -arch=" + chip + " " + path + " -o /dev/null 2>&1";
  Assembled result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[512];
  while (fgets(buffer, sizeof(buffer), pipe)) result.report += buffer;
  result.ok = pclose(pipe) == 0;
  readReport(result);
  return result;
}

}  // namespace partita::kernels
