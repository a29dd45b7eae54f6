// A loop built by hand, without kernels.
#ifndef PARTITA_RUNTIME_PROGRAM_TEST_LOOP_PROGRAM_H_
#define PARTITA_RUNTIME_PROGRAM_TEST_LOOP_PROGRAM_H_

#include "runtime/program/artifact.h"

namespace partita::program {

// Multiplies x f32[4,8] by w f32[8,8] as often as three i1[] say:
//   go, a, b, y = go, a, b, x; while go: go, a, b, y = a, b, last, y w
// Inputs: go, a, b, x. Outputs: the last values of go, a, b and y. `last` is in
// the data section: with 1, the loop has no end once b is reached. w is
// embedded: twice the identity.
struct LoopProgram {
  ProgramT program;
  DataSection data;

  explicit LoopProgram(bool last = false);
  InstructionT& Loop() { return *program.functions[1]->body[0]; }
  ArtifactParts Parts() const { return {SerializeProgram(program), "", data}; }
};

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_TEST_LOOP_PROGRAM_H_
