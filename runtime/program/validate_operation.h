// Checks of single operations, tensor types and operands, with overflow-safe
// arithmetic. Errors are InvalidArgument.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_OPERATION_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_OPERATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// --- validate_operand.cc: parts that operations share ---

// Larger strides and extents are refused; products of two of them still fit 64
// bits.
inline constexpr int64_t kMaxExtent = int64_t{1} << 31;

bool KnownDType(DType dtype);

// `what` is the name of the operation in messages.
absl::Status CheckLibraryDType(const char* what, DType dtype);
absl::Status CheckActivation(const char* what, Activation activation);

absl::StatusOr<int64_t> ValidateType(const TensorType& type);  // its bytes
// Returns the bytes of a tensor without dimensions of size 0.
absl::StatusOr<int64_t> BytesOfShape(const char* what, DType dtype,
                                     const std::vector<int64_t>& shape);

// `bytes` gives the size that each operand must have, in order; the last
// `outputs` operands are written.
absl::Status ValidateOperands(const char* what, const Instruction& instruction,
                              const std::vector<int64_t>& bytes,
                              int outputs = 1);

// (V7) Two operands of equal size.
absl::Status ValidateCopy(const Instruction& instruction);

// --- validate_launch.cc ---

// Checks that the kernel exists, and that the launch has the form of the
// program's target.
absl::Status ValidateLaunch(const Program& program, const Launch& launch,
                            const Instruction& instruction);

// --- validate_product.cc and validate_conv.cc ---

// (V7) Numbers of operands and outputs, and bytes of each operand.
absl::Status ValidateGemm(const Gemm& gemm, const Instruction& instruction);
absl::Status ValidateGroupedGemm(const GroupedGemm& gemm,
                                 const Instruction& instruction);
absl::Status ValidateConv(const Conv& conv, const Instruction& instruction);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_OPERATION_H_
