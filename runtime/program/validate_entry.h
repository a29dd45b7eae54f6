// Checks a program's entries.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_ENTRY_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_ENTRY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/program/mesh.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// (V13): the pipeline's axes are valid, there is an entry for each of its
// devices, and no shard or coordinate names its digits. The mesh, the ports and
// the parameters have been checked.
absl::Status ValidatePipeline(const Program& program);
// (V13): the valid list `axes` names none of the pipeline's digits.
absl::Status ValidateApart(const Program& program, const AxisList* axes);

// (V3), (V8), (V12), (V13) for all entries. `needed` gives, for each function,
// the bytes that it uses of each argument. All functions have been checked.
absl::Status ValidateEntries(const Program& program,
                             const std::vector<std::vector<int64_t>>& needed);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_ENTRY_H_
