// Runs ONNX's own backend tests: import, execute, compare.
//
// A test is a folder with model.onnx and test_data_set_*/{input,output}_*.pb.
// What the importer refuses as unsupported is skipped and counted under what
// it named: an operator, an attribute, a type; never by the test's name. Inputs
// whose values shapes depend on are given to the importer as constants.
#ifndef PARTITA_TESTS_CONFORMANCE_ONNX_BACKEND_H_
#define PARTITA_TESTS_CONFORMANCE_ONNX_BACKEND_H_

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "dialects/nn/tensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::conformance {

// Computes the results of @main for the values of its inputs (the arguments of
// kind "input", in order). Weights come from the files that the arguments name.
using Executor = std::function<mlir::FailureOr<std::vector<nn::Tensor>>(
    mlir::ModuleOp, llvm::ArrayRef<nn::Tensor>)>;

// Through the nn interpreter.
Executor interpreterExecutor();

enum class Outcome { kPassed, kFailed, kSkipped };

struct TestResult {
  std::string name;
  Outcome outcome = Outcome::kPassed;
  std::vector<std::string> unsupported;  // why it was skipped
  std::string message;                   // why it failed
};

struct Summary {
  int passed = 0, failed = 0, skipped = 0;
  // Tests skipped for each operator, attribute or type (a test may need
  // several).
  std::map<std::string, int> skipped_for;
  std::vector<TestResult> failures;

  void add(const TestResult& result);
  void print(std::ostream& out) const;
};

struct BackendOptions {
  // Only tests whose names contain this.
  std::string filter;
  double rtol = 1e-3, atol = 1e-7;
  // What the executor lacks for a module: the test is skipped and counted under
  // these names.
  std::function<std::vector<std::string>(mlir::ModuleOp)> lacks;
};

// One test.
TestResult runBackendTest(const std::string& folder, const Executor& executor,
                          const BackendOptions& options = {});

// Every folder with a model.onnx directly below `folder`.
Summary runBackendTests(const std::string& folder, const Executor& executor,
                        const BackendOptions& options = {});

// A whole network, light_<name>.onnx with light_<name>_output_0.pb beside it:
// its input is arange(n) / n.
TestResult runLightNetwork(const std::string& model, const Executor& executor,
                           const BackendOptions& options = {});

}  // namespace partita::conformance

#endif  // PARTITA_TESTS_CONFORMANCE_ONNX_BACKEND_H_
