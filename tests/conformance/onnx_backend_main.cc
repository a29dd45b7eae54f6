// Runs folders of ONNX backend tests and prints counts, compiled with artifacts
// in DIR or through the interpreter:
// onnx_backend [--compiled=DIR] [--filter=TEXT] [--at-least=N]
//              FOLDER|light_*.onnx...
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/conformance/compiled_executor.h"
#include "tests/conformance/onnx_backend.h"

int main(int argc, char** argv) {
  using namespace partita::conformance;
  BackendOptions options;
  Summary summary;
  Executor executor = interpreterExecutor();
  int at_least = 0;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument.rfind("--filter=", 0) == 0) {
      options.filter = argument.substr(9);
    } else if (argument.rfind("--compiled=", 0) == 0) {
      executor = compiledExecutor(argument.substr(11));
      options.lacks = compilerLacks;
    } else if (argument.rfind("--at-least=", 0) == 0) {
      at_least = std::atoi(argument.c_str() + 11);
    } else if (argument.size() > 5 &&
               argument.substr(argument.size() - 5) == ".onnx") {
      summary.add(runLightNetwork(argument, executor, options));
    } else {
      Summary part = runBackendTests(argument, executor, options);
      summary.passed += part.passed;
      summary.failed += part.failed;
      summary.skipped += part.skipped;
      for (const auto& [name, count] : part.skipped_for)
        summary.skipped_for[name] += count;
      summary.failures.insert(summary.failures.end(), part.failures.begin(),
                              part.failures.end());
    }
  }
  summary.print(std::cout);
  if (summary.passed < at_least)
    std::cout << "expected at least " << at_least << " to pass\n";
  return summary.failed > 0 || summary.passed < at_least ? 1 : 0;
}
