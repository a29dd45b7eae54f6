// Lists a program's parameters as checkpoints see them.
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
  TensorSpec local;  // this device's block
  TensorSpec whole;  // in the model's shape
  program::ParameterKind kind = program::ParameterKind::parameter;
  bool updated = false;  // a step writes a new value
  // Checkpoints hold a tensor per index of dimension 0: base::PartName.
  bool in_parts = false;
};

// All parameters but coordinates, in the program's order.
std::vector<ParameterSpec> ListParameters(const program::Program& program);
// The subset that the entry uses.
std::vector<ParameterSpec> ListParameters(const program::Program& program,
                                          const program::Entry& entry);

// NotFound if no parameter has this name.
absl::StatusOr<const ParameterSpec*> FindParameter(
    const std::vector<ParameterSpec>& parameters, const std::string& name);

// InvalidArgument unless the tensor has the spec's type and data.
absl::Status CheckParameterTensor(const TensorSpec& spec,
                                  const ConstTensor& tensor);

// FailedPrecondition unless the parameter may be replaced: it is updated, or it
// is a state, which may be frozen.
absl::Status CheckUpdated(const ParameterSpec& spec);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_PARAMETERS_H_
