// Checks of single operations and tensor types, and arithmetic that cannot
// overflow unnoticed.
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

// That the kernel is one of the program's, and that it is run in the form of
// the program's target.
absl::Status ValidateLaunch(const Program& program, const Launch& launch,
                            const Instruction& instruction);

// `bytes` is what each operand must hold, in order; the last is the only
// output.
absl::Status ValidateOperands(const char* what, const Instruction& instruction,
                              const std::vector<int64_t>& bytes);

// (V7) for gemm, conv and copy: counts of operands and outputs, and bytes of
// each operand.
absl::Status ValidateGemm(const Gemm& gemm, const Instruction& instruction);
absl::Status ValidateConv(const Conv& conv, const Instruction& instruction);
absl::Status ValidateCopy(const Instruction& instruction);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_OPERATION_H_
