// Writes PipelineProgram to a file, for tests that run partita-run itself:
// write_pipeline_artifact FILE BATCH DATA.
#include <cstdlib>
#include <iostream>

#include "runtime/program/test_pipeline_program.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const partita::program::PipelineProgram pipeline(std::atoll(argv[2]),
                                                   std::atoll(argv[3]));
  const absl::Status status =
      partita::program::WriteArtifact(argv[1], pipeline.Parts());
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
