// Checks single operations and tensor types, with overflow-safe arithmetic.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_OPERATION_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_OPERATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

absl::StatusOr<int64_t> ValidateType(const TensorType& type);  // its bytes

// Checks that the kernel exists, and that the launch has the form of the
// program's target.
absl::Status ValidateLaunch(const Program& program, const Launch& launch,
                            const Instruction& instruction);

// `bytes` gives the size that each operand must have, in order; the last
// `outputs` operands are written.
absl::Status ValidateOperands(const char* what, const Instruction& instruction,
                              const std::vector<int64_t>& bytes,
                              int outputs = 1);

// (V7) for gemm, grouped gemm, conv and copy: numbers of operands and outputs,
// and bytes of each operand.
absl::Status ValidateGemm(const Gemm& gemm, const Instruction& instruction);
absl::Status ValidateGroupedGemm(const GroupedGemm& gemm,
                                 const Instruction& instruction);
absl::Status ValidateConv(const Conv& conv, const Instruction& instruction);
absl::Status ValidateCopy(const Instruction& instruction);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_OPERATION_H_
