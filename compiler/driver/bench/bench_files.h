// The tensors that the systems of a benchmark exchange: .npy files.
#ifndef PARTITA_COMPILER_DRIVER_BENCH_BENCH_FILES_H_
#define PARTITA_COMPILER_DRIVER_BENCH_BENCH_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/program/program_generated.h"

namespace partita::driver {

struct NamedFile {
  std::string name;  // of an input or output
  std::string path;
};

// Writes a file for each input, in the program's order, into `folder`. Floats
// have mean 0 and deviation 1. Integers that index a table are uniform below
// its size; other integers, such as masks, are 1.
absl::StatusOr<std::vector<NamedFile>> writeInputs(
    const program::Program& program, const std::string& folder);

// Paths of the outputs that partita-run wrote into `folder`, in the program's
// order. NotFound if one is missing.
absl::StatusOr<std::vector<std::string>> outputFiles(
    const program::Program& program, const std::string& folder);

// How far two systems' outputs are apart, over all elements of all outputs.
struct Difference {
  double largest = 0;    // absolute; infinite if only one of two is finite
  double magnitude = 0;  // the largest finite expected element
};

// Compares files pairwise. InvalidArgument if their numbers or shapes differ.
absl::StatusOr<Difference> compareOutputs(
    const std::vector<std::string>& found,
    const std::vector<std::string>& expected);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_BENCH_BENCH_FILES_H_
