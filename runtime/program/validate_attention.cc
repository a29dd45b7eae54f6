// Tensors of an attention stay inside the operands of its launch.
#include "runtime/program/validate_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"

namespace partita::program {
namespace {

// Products of two extents fit 64 bits.
constexpr int64_t kMaxExtent = int64_t{1} << 31;
constexpr int64_t kElementBytes = 2;

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(
      absl::StrCat("launch: its attention: ", message));
}

// (extent, stride)
using Dims = std::array<std::pair<int64_t, int64_t>, 4>;

// True if two indices may address the same element.
bool Overlaps(Dims dims) {
  std::sort(dims.begin(), dims.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  int64_t reach = 0;
  for (const auto& [extent, stride] : dims) {
    if (extent == 1) continue;
    if (stride <= reach) return true;
    reach += (extent - 1) * stride;
  }
  return false;
}

class Checker {
 public:
  Checker(const Attention& attention, const Instruction& instruction)
      : attention_(attention),
        instruction_(instruction),
        count_(SizeOrZero(instruction.operands())),
        inputs_(count_ - instruction.outputs()) {}

  absl::Status CheckSizes() const {
    const std::pair<const char*, int64_t> extents[] = {
        {"batch", attention_.batch()},
        {"heads", attention_.heads()},
        {"groups", attention_.groups()},
        {"queries", attention_.queries()},
        {"keys", attention_.keys()},
        {"size", attention_.size()},
        {"value_size", attention_.value_size()}};
    for (const auto& [name, extent] : extents)
      if (extent < 1 || extent > kMaxExtent)
        return Bad(absl::StrCat("expected ", name, " from 1 to ", kMaxExtent,
                                ", found ", extent));
    if (attention_.heads() % attention_.groups() != 0)
      return Bad(absl::StrCat(attention_.heads(), " heads are no multiple of ",
                              attention_.groups(), " heads of keys"));
    if (attention_.dtype() != DType::f16 && attention_.dtype() != DType::bf16)
      return Bad(absl::StrCat("expected element type f16 or bf16, found ",
                              static_cast<int>(attention_.dtype())));
    if (!std::isfinite(attention_.scale()))
      return Bad("its scale is not finite");
    const int64_t most = attention_.causal() ? attention_.keys() - 1 : 0;
    if (attention_.causal_offset() < 0 || attention_.causal_offset() > most)
      return Bad(absl::StrCat("expected a causal offset from 0 to ", most,
                              ", found ", attention_.causal_offset()));
    return absl::OkStatus();
  }

  absl::Status CheckTensor(const char* name, const AttentionTensor& tensor,
                           int64_t heads, int64_t positions, int64_t size,
                           bool is_result) const {
    PARTITA_RETURN_IF_ERROR(CheckOperand(name, tensor.operand(), is_result));
    const Dims dims = {{{attention_.batch(), tensor.batch()},
                        {heads, tensor.head()},
                        {positions, tensor.position()},
                        {size, 1}}};
    const int64_t bytes = BytesOf(tensor.operand());
    const int64_t elements = bytes / kElementBytes;
    bool is_inside = tensor.offset() >= 0 && tensor.offset() < elements;
    // Elements behind the farthest one that the dimensions so far reach.
    int64_t left = is_inside ? elements - 1 - tensor.offset() : 0;
    for (const auto& [extent, stride] : dims) {
      if (extent == 1) continue;
      if (stride < 0)
        return Bad(absl::StrCat("expected strides of ", name,
                                " of at least 0, found ", stride));
      if (stride > left / (extent - 1)) is_inside = false;
      if (is_inside) left -= (extent - 1) * stride;
    }
    if (!is_inside)
      return Bad(absl::StrCat(name, " is not inside its operand of ", bytes,
                              " bytes"));
    if (is_result && Overlaps(dims))
      return Bad(absl::StrCat("elements of ", name, " overlap"));
    return absl::OkStatus();
  }

  absl::Status CheckLse() const {
    if (attention_.lse() == -1) return absl::OkStatus();
    PARTITA_RETURN_IF_ERROR(
        CheckOperand("lse", attention_.lse(), /*is_result=*/true));
    if (attention_.lse() == attention_.out()->operand())
      return Bad("lse is in the operand of out");
    // Without overflow: sizes are at most 2^31, and `rows` is at most the
    // elements of the operand.
    const int64_t rows = attention_.batch() * attention_.heads();
    const int64_t bytes = BytesOf(attention_.lse());
    if (rows > bytes / 4 || rows * attention_.queries() > bytes / 4)
      return Bad(
          absl::StrCat("lse is not inside its operand of ", bytes, " bytes"));
    return absl::OkStatus();
  }

 private:
  absl::Status CheckOperand(const char* name, int64_t operand,
                            bool is_result) const {
    const int64_t first = is_result ? inputs_ : 0;
    const int64_t end = is_result ? count_ : inputs_;
    if (operand < first || operand >= end)
      return Bad(absl::StrCat("expected ", name, " in the operands from ",
                              first, " to ", end - 1, ", found ", operand));
    return absl::OkStatus();
  }

  int64_t BytesOf(int64_t operand) const {
    return instruction_.operands()
        ->Get(static_cast<flatbuffers::uoffset_t>(operand))
        ->bytes();
  }

  const Attention& attention_;
  const Instruction& instruction_;
  const int64_t count_, inputs_;
};

}  // namespace

absl::Status ValidateAttention(const Attention& a,
                               const Instruction& instruction) {
  const Checker checker(a, instruction);
  PARTITA_RETURN_IF_ERROR(checker.CheckSizes());
  PARTITA_RETURN_IF_ERROR(checker.CheckTensor("q", *a.q(), a.heads(),
                                              a.queries(), a.size(), false));
  PARTITA_RETURN_IF_ERROR(
      checker.CheckTensor("k", *a.k(), a.groups(), a.keys(), a.size(), false));
  PARTITA_RETURN_IF_ERROR(checker.CheckTensor("v", *a.v(), a.groups(), a.keys(),
                                              a.value_size(), false));
  PARTITA_RETURN_IF_ERROR(checker.CheckTensor(
      "out", *a.out(), a.heads(), a.queries(), a.value_size(), true));
  return checker.CheckLse();
}

}  // namespace partita::program
