// Element types, shapes, and the operands of instructions.
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"
#include "runtime/program/validate.h"
#include "runtime/program/validate_operation.h"

namespace partita::program {
namespace {

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

}  // namespace

bool KnownDType(DType dtype) {
  return dtype >= DType::MIN && dtype <= DType::MAX;
}

absl::Status CheckLibraryDType(const char* what, DType dtype) {
  if (dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16)
    return absl::OkStatus();
  return Bad(absl::StrCat(
      what, ": element type must be f32, f16 or bf16, found ",
      KnownDType(dtype) ? base::NameOf(ToBase(dtype)) : "an unknown one"));
}

absl::Status CheckActivation(const char* what, Activation activation) {
  if (activation >= Activation::MIN && activation <= Activation::MAX)
    return absl::OkStatus();
  return Bad(absl::StrCat(what, ": unknown activation ",
                          static_cast<int>(activation)));
}

absl::StatusOr<int64_t> BytesOfShape(const char* what, DType dtype,
                                     const std::vector<int64_t>& shape) {
  for (const int64_t size : shape) {
    if (size < 1 || size > kMaxExtent)
      return Bad(absl::StrCat(what, ": size ", size, " is out of range"));
  }
  const std::optional<int64_t> bytes = base::ByteCount(ToBase(dtype), shape);
  if (!bytes)
    return Bad(
        absl::StrCat(what, ": [", absl::StrJoin(shape, ","), "] is too big"));
  return *bytes;
}

absl::Status ValidateOperands(const char* what, const Instruction& instruction,
                              const std::vector<int64_t>& bytes, int outputs) {
  const auto* operands = instruction.operands();
  if (SizeOrZero(operands) != static_cast<int64_t>(bytes.size()) ||
      instruction.outputs() != outputs) {
    return Bad(absl::StrCat(what, ": expected ", bytes.size(), " operands, ",
                            outputs, " of them written, found ",
                            SizeOrZero(operands), ", ", instruction.outputs(),
                            " of them written"));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Buffer& buffer =
        *operands->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (buffer.bytes() < bytes[i]) {
      return Bad(absl::StrCat(what, ": operand ", i, " needs ", bytes[i],
                              " bytes, found ", buffer.bytes()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ValidateType(const TensorType& type) {
  if (!KnownDType(type.dtype()))
    return Bad(
        absl::StrCat("unknown element type ", static_cast<int>(type.dtype())));
  if (!IsAligned(type.shape())) return Bad("a shape is not aligned");
  if (SizeOrZero(type.shape()) > kMaxRank) {
    return Bad(absl::StrCat("a shape of ", SizeOrZero(type.shape()),
                            " dimensions; at most ", kMaxRank));
  }
  const std::optional<int64_t> bytes =
      base::ByteCount(ToBase(type.dtype()), ShapeOf(type));
  if (!bytes)
    return Bad(absl::StrCat("shape [", absl::StrJoin(ShapeOf(type), ","),
                            "] is negative or too big"));
  return *bytes;
}

absl::Status ValidateCopy(const Instruction& instruction) {
  PARTITA_RETURN_IF_ERROR(ValidateOperands("copy", instruction, {0, 0}));
  const int64_t from = instruction.operands()->Get(0)->bytes();
  const int64_t to = instruction.operands()->Get(1)->bytes();
  if (from != to)
    return Bad(absl::StrCat("copy: operands of equal size expected, found ",
                            from, " and ", to, " bytes"));
  return absl::OkStatus();
}

}  // namespace partita::program
