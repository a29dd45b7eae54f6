// Writes the programs of runtime/program/test_program.h, as seeds for fuzzing:
// make_artifact SAMPLE DIVIDED.
#include <iostream>

#include "runtime/program/test_program.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const partita::program::SampleProgram sample;
  const partita::program::DividedProgram divided(5, 2, 3);
  absl::Status status =
      partita::program::WriteArtifact(argv[1], sample.Parts());
  if (status.ok())
    status = partita::program::WriteArtifact(argv[2], divided.Parts());
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
