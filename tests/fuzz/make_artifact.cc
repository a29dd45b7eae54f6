// Writes the test programs of runtime/program as seeds for fuzzing:
// make_artifact SAMPLE DIVIDED PIPELINE LOOP.
#include <iostream>

#include "runtime/program/test_loop_program.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const partita::program::SampleProgram sample;
  const partita::program::DividedProgram divided(5, 2, 3);
  absl::Status status =
      partita::program::WriteArtifact(argv[1], sample.Parts());
  if (status.ok())
    status = partita::program::WriteArtifact(argv[2], divided.Parts());
  if (status.ok()) {
    status = partita::program::WriteArtifact(
        argv[3], partita::program::PipelineProgram(8, 2).Parts());
  }
  if (status.ok()) {
    status = partita::program::WriteArtifact(
        argv[4], partita::program::LoopProgram().Parts());
  }
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
