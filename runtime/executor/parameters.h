// Which parameters a program has, as checkpoints see them.
#ifndef PARTITA_RUNTIME_EXECUTOR_PARAMETERS_H_
#define PARTITA_RUNTIME_EXECUTOR_PARAMETERS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/executor/tensor.h"
#include "runtime/program/program_generated.h"

namespace partita::executor {

struct ParameterSpec {
  size_t index = 0;  // into Program.parameters
  TensorSpec local;  // a device's block
  TensorSpec whole;  // in the shape that the model has it in
  program::ParameterKind kind = program::ParameterKind::parameter;
  bool updated = false;  // a step gives it a new value
};

// All but coordinates, in the program's order.
std::vector<ParameterSpec> ListParameters(const program::Program& program);
// Those of them that the entry names.
std::vector<ParameterSpec> ListParameters(const program::Program& program,
                                          const program::Entry& entry);

// NotFound.
absl::StatusOr<const ParameterSpec*> FindParameter(
    const std::vector<ParameterSpec>& parameters, const std::string& name);

// InvalidArgument unless the tensor has the spec's type, and data.
absl::Status CheckParameterTensor(const TensorSpec& spec,
                                  const ConstTensor& tensor);

// FailedPrecondition unless it is updated or a state, which may be frozen: only
// then may it be replaced.
absl::Status CheckUpdated(const ParameterSpec& spec);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_PARAMETERS_H_
