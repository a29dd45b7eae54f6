// Runs files of StableHLO programs and prints counts, compiled with artifacts
// in DIR or through the interpreter:
// stablehlo_suite_runner [--compiled=DIR|--divided=DIR] [--filter=TEXT] FILE...
// With --divided they run on a thread per device of their own meshes.
#include <iostream>
#include <string>

#include "tests/conformance/compiled_executor.h"
#include "tests/conformance/stablehlo_suite.h"

int main(int argc, char** argv) {
  using namespace partita::conformance;
  SuiteOptions options;
  Summary all;
  Executor executor = interpreterExecutor();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--filter=", 0) == 0) {
      options.filter = argument.substr(9);
      continue;
    }
    if (argument.rfind("--compiled=", 0) == 0) {
      executor = compiledExecutor(argument.substr(11));
      options.lacks = compilerLacks;
      continue;
    }
    if (argument.rfind("--divided=", 0) == 0) {
      executor = dividedExecutor(argument.substr(10));
      continue;
    }
    const auto part = runStablehloSuite(argument, executor, options);
    if (!part.ok()) {
      std::cerr << part.status() << "\n";
      return 2;
    }
    std::cout << argument.substr(argument.rfind('/') + 1) << ": "
              << part->passed << " equal, " << part->failed << " different, "
              << part->skipped << " refused" << std::endl;
    all.passed += part->passed;
    all.failed += part->failed;
    all.skipped += part->skipped;
    for (const auto& [name, count] : part->skipped_for)
      all.skipped_for[name] += count;
    all.failures.insert(all.failures.end(), part->failures.begin(),
                        part->failures.end());
  }
  all.print(std::cout);
  return all.failed > 0 ? 1 : 0;
}
