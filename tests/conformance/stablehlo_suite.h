// Runs programs of StableHLO on given inputs and compares with given results.
//
// A file is a safetensors file of programs: NAME|program is a portable
// artifact, NAME|in.I and NAME|out.I are its inputs and expected results, in
// order. tests/peers/make_stablehlo_suite.py writes such files. A program that
// the importer refuses is skipped and counted under what is not supported;
// every other error is a failure.
#ifndef PARTITA_TESTS_CONFORMANCE_STABLEHLO_SUITE_H_
#define PARTITA_TESTS_CONFORMANCE_STABLEHLO_SUITE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tests/conformance/onnx_backend.h"

namespace partita::conformance {

struct SuiteOptions {
  // Run only programs whose names contain this.
  std::string filter;
  // Features of a module that the executor lacks, as in BackendOptions.
  std::function<std::vector<std::string>(mlir::ModuleOp)> lacks;
};

// Runs all programs of a file, in the order of their names. An error if the
// file cannot be read.
absl::StatusOr<Summary> runStablehloSuite(const std::string& path,
                                          const Executor& executor,
                                          const SuiteOptions& options = {});

}  // namespace partita::conformance

#endif  // PARTITA_TESTS_CONFORMANCE_STABLEHLO_SUITE_H_
