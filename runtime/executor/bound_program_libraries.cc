// Prepares library operations, and releases weights that libraries copy.
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/bound_program.h"
#include "runtime/executor/instructions.h"
#include "runtime/executor/library_desc.h"

namespace partita::executor {
namespace {

// Operand that libraries may copy: a gemm's right-hand side, a grouped gemm's
// matrices or a convolution's weight.
constexpr size_t kWeightOperand = 1;

const program::Attention* AttentionOf(const program::Instruction& instruction) {
  const program::Launch* launch = instruction.operation_as_Launch();
  return launch == nullptr ? nullptr : launch->attention();
}

}  // namespace

absl::Status BoundProgram::PrepareLibraryOps() {
  std::map<int, GlobalUse> uses;
  for (const Step& step : steps_) {
    for (size_t i = 0; i < static_cast<size_t>(step.count); ++i) {
      const int global = buffer_globals_[step.first + i];
      if (global < 0) continue;
      GlobalUse& use = uses[global];
      if (IsLibrary(step.kind) && i == kWeightOperand) {
        ++use.library_uses;
      } else {
        use.kept_elsewhere = false;
      }
    }
  }
  for (Step& step : steps_) {
    const bool is_attention = AttentionOf(*step.instruction) != nullptr;
    if (!is_attention && !IsLibrary(step.kind)) continue;
    if (context_.communicator != nullptr)
      PARTITA_RETURN_IF_ERROR(context_.communicator->Progress());
    const absl::Status status =
        is_attention ? PrepareAttention(step) : PrepareStep(step);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("cannot prepare '",
                                                      NameOf(*step.instruction),
                                                      "': ", status.message()));
    }
    if (is_attention) continue;
    const int global = buffer_globals_[step.first + kWeightOperand];
    if (global < 0) continue;
    GlobalUse& use = uses[global];
    use.kept_elsewhere =
        use.kept_elsewhere && step.library_op->Packed(kWeightOperand);
    if (--use.library_uses == 0 && use.kept_elsewhere && context_.release)
      context_.release(global);
  }
  return absl::OkStatus();
}

absl::Status BoundProgram::PrepareStep(Step& step) {
  std::vector<const void*> constants(static_cast<size_t>(step.count), nullptr);
  std::string key;
  for (size_t i = 0; i < constants.size(); ++i) {
    if (buffer_globals_[step.first + i] < 0 &&
        !buffer_constants_[step.first + i])
      continue;
    constants[i] = buffers_[step.first + i];
    absl::StrAppend(&key, i, "@",
                    absl::Hex(reinterpret_cast<uintptr_t>(constants[i])), " ");
  }
  const auto prepare = [&](auto desc, auto&& make) -> absl::Status {
    absl::StrAppend(&key, KeyOf(desc));
    std::unique_ptr<device::LibraryOp>& op = library_ops_[key];
    if (op == nullptr) {
      PARTITA_ASSIGN_OR_RETURN(op, make(desc));
    }
    step.library_op = op.get();
    return absl::OkStatus();
  };
  if (const program::Gemm* gemm = step.instruction->operation_as_Gemm()) {
    return prepare(ToDesc(*gemm), [&](const auto& desc) {
      return context_.device.PrepareGemm(desc, constants);
    });
  }
  if (const auto* grouped = step.instruction->operation_as_GroupedGemm()) {
    return prepare(ToDesc(*grouped), [&](const auto& desc) {
      return context_.device.PrepareGroupedGemm(desc, constants);
    });
  }
  device::ConvDesc conv = ToDesc(*step.instruction->operation_as_Conv());
  conv.residual_in_out = AddsInPlace(step, conv);
  return prepare(conv, [&](const auto& desc) {
    return context_.device.PrepareConv(desc, constants);
  });
}

// Equal attentions by the same kernel share an operation.
absl::Status BoundProgram::PrepareAttention(Step& step) {
  const device::AttentionDesc desc = ToDesc(*AttentionOf(*step.instruction));
  std::vector<int64_t> bytes;
  for (const program::Buffer* operand : *step.instruction->operands())
    bytes.push_back(operand->bytes());
  const std::string key =
      absl::StrCat(KeyOf(desc), " kernel ",
                   step.instruction->operation_as_Launch()->kernel(), " on ",
                   absl::StrJoin(bytes, ","));
  auto [found, is_new] = library_ops_.try_emplace(key);
  if (is_new) {
    PARTITA_ASSIGN_OR_RETURN(
        found->second, context_.device.PrepareAttention(desc, *step.kernel,
                                                        step.shape, bytes));
  }
  step.library_op = found->second.get();
  return absl::OkStatus();
}

bool BoundProgram::AddsInPlace(const Step& step,
                               const device::ConvDesc& desc) const {
  if (!desc.has_residual ||
      (desc.activation != device::Activation::kNone && !desc.activates_sum))
    return false;
  // Memory of the caller changes between runs.
  const size_t out = step.first + static_cast<size_t>(step.count) - 1;
  return buffers_[out - 1] == buffers_[out] &&
         std::none_of(relocations_.begin(), relocations_.end(),
                      [&](const Relocation& relocation) {
                        return relocation.buffer == out ||
                               relocation.buffer == out - 1;
                      });
}

}  // namespace partita::executor
