// Checks of a program's entries: what each device runs.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_ENTRY_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_ENTRY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/program/mesh.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// (V13): the pipeline names axes as it may, there is an entry for each of its
// devices, and no shard or coordinate names its digits. The mesh, the ports and
// the parameters have been checked.
absl::Status ValidatePipeline(const Program& program);
// (V13): `axes`, which are valid, name none of the pipeline's digits.
absl::Status ValidateApart(const Program& program, const AxisList* axes);

// (V3), (V8), (V12), (V13) of all entries. `needed` has the bytes that each
// function, all of which have been checked, touches of each of its arguments.
absl::Status ValidateEntries(const Program& program,
                             const std::vector<std::vector<int64_t>>& needed);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_ENTRY_H_
