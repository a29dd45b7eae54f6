// Runs the checks of programs on a changed sample program.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_TESTING_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_TESTING_H_

#include <functional>
#include <string>

#include "runtime/program/test_program.h"
#include "runtime/program/validate.h"

namespace partita::program {

// The message after `change` to the sample program; empty if it is valid.
inline std::string After(const std::function<void(ProgramT&)>& change) {
  SampleProgram sample;
  change(sample.program);
  const std::string bytes = SerializeProgram(sample.program);
  const absl::Status status = ValidateProgram(
      *GetProgram(bytes.data()), sample.data.size(), /*has_code=*/false);
  return std::string(status.message());
}

inline FunctionT& Main(ProgramT& program) { return *program.functions[2]; }
inline FunctionT& Layer(ProgramT& program) { return *program.functions[0]; }

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_TESTING_H_
