// Runs ONNX's own backend tests: import, execute, compare.
//
// A test is a folder with model.onnx and test_data_set_*/{input,output}_*.pb.
// If the importer refuses a feature as unsupported, the test is skipped and
// counted under that operator, attribute or type, never under the test's name.
// Inputs whose values determine shapes are passed to the importer as constants.
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

// Computes the results of @main for the values of its inputs (arguments of kind
// "input", in order). Weights come from the files that the arguments name.
using Executor = std::function<mlir::FailureOr<std::vector<nn::Tensor>>(
    mlir::ModuleOp, llvm::ArrayRef<nn::Tensor>)>;

// An executor that uses the nn interpreter.
Executor interpreterExecutor();

enum class Outcome { kPassed, kFailed, kSkipped };

struct TestResult {
  std::string name;
  Outcome outcome = Outcome::kPassed;
  std::vector<std::string> unsupported;  // reasons for skipping
  std::string message;                   // reason for a failure
};

struct Summary {
  int passed = 0, failed = 0, skipped = 0;
  // Number of tests skipped for each operator, attribute or type (a test may
  // need several).
  std::map<std::string, int> skipped_for;
  std::vector<TestResult> failures;

  void add(const TestResult& result);
  void print(std::ostream& out) const;
};

struct BackendOptions {
  // Run only tests whose names contain this.
  std::string filter;
  double rtol = 1e-3, atol = 1e-7;
  // Features of a module that the executor lacks. The test is skipped and
  // counted under these names.
  std::function<std::vector<std::string>(mlir::ModuleOp)> lacks;
};

// Runs one test.
TestResult runBackendTest(const std::string& folder, const Executor& executor,
                          const BackendOptions& options = {});

// Runs every folder with a model.onnx directly below `folder`.
Summary runBackendTests(const std::string& folder, const Executor& executor,
                        const BackendOptions& options = {});

// Runs a whole network, light_<name>.onnx with light_<name>_output_0.pb beside
// it. Its input is arange(n) / n.
TestResult runLightNetwork(const std::string& model, const Executor& executor,
                           const BackendOptions& options = {});

}  // namespace partita::conformance

#endif  // PARTITA_TESTS_CONFORMANCE_ONNX_BACKEND_H_
