// Writes DividedProgram to a file, for tests that run partita-run itself:
// write_divided_artifact FILE BATCH DATA TENSOR.
#include <cstdlib>
#include <iostream>

#include "runtime/program/test_program.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const partita::program::DividedProgram divided(
      std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]));
  const absl::Status status =
      partita::program::WriteArtifact(argv[1], divided.Parts());
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
