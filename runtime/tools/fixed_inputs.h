// Batches in which some or all tensors are the same in every step.
#ifndef PARTITA_RUNTIME_TOOLS_FIXED_INPUTS_H_
#define PARTITA_RUNTIME_TOOLS_FIXED_INPUTS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"
#include "runtime/data/batch_source.h"

namespace partita::tools {

// `fixed` pairs names of inputs in `specs` with their content (see RunHelp).
// `rest` makes the source of the other inputs; it is not called if there are
// none. InvalidArgument if a name is not in `specs`.
using MakeSource =
    std::function<absl::StatusOr<std::unique_ptr<data::BatchSource>>(
        const std::vector<base::TensorSpec>& specs)>;
absl::StatusOr<std::unique_ptr<data::BatchSource>> FixInputs(
    const std::vector<base::TensorSpec>& specs,
    const std::vector<std::pair<std::string, std::string>>& fixed,
    const MakeSource& rest);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_FIXED_INPUTS_H_
