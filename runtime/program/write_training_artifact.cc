// Writes TrainingProgram to a file, for tests that run partita-run itself:
// write_training_artifact FILE BATCH DATA TENSOR.
#include <cstdlib>
#include <iostream>

#include "runtime/program/test_training_program.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const partita::program::TrainingProgram training(
      std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]));
  const absl::Status status =
      partita::program::WriteArtifact(argv[1], training.Parts());
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
