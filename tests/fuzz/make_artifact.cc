// Writes the sample program of runtime/program/test_program.h, as a seed for
// fuzzing.
#include <iostream>

#include "runtime/program/test_program.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const partita::program::SampleProgram sample;
  const absl::Status status =
      partita::program::WriteArtifact(argv[1], sample.Parts());
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
