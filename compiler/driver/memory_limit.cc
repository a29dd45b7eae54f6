// Checks a memory table against a limit, and converts it.
#include "compiler/driver/memory_limit.h"

#include "llvm/ADT/StringExtras.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

using base::FormatBytes;
using memory::MemoryClass;
using memory::MemoryPart;
using memory::MemoryTable;

constexpr size_t kPartsShown = 5;

int64_t devicesOfBatch(const plan::Plan* plan) {
  int64_t devices = 1, of_stages = 1;
  if (plan != nullptr)
    for (const plan::Entry& entry : plan->shard)
      for (const plan::ShardedDimension& division : entry.dimensions) {
        if (division.dimension != "B") continue;
        const int64_t size = core::SizeOf(division.axes);
        if (entry.stages.empty())
          devices *= size;
        else
          of_stages = std::max(of_stages, size);
      }
  return devices * of_stages;
}

// True if the rules already recompute every layer.
bool isAllRecomputed(const plan::Plan* plan, const TrainOptions& train) {
  const std::vector<plan::Recompute>& rules =
      plan != nullptr && !plan->recompute.empty() ? plan->recompute
                                                  : train.recompute;
  return !rules.empty() && rules.back().at.empty() &&
         (rules.back().policy == plan::RecomputePolicy::kFull ||
          rules.back().policy == plan::RecomputePolicy::kBudget);
}

// Advice to use more microbatches. A step keeps the activations of one
// microbatch, or, in a pipeline, of the microbatches that its schedule has in
// flight.
std::string adviceOnMicrobatches(const MemoryTable& table,
                                 const plan::Plan* plan) {
  const int64_t microbatches = plan != nullptr ? plan->microbatches : 1;
  const std::string more = "microbatches: " + std::to_string(2 * microbatches) +
                           " or more (parts " + "of " +
                           FormatBytes(table.of(MemoryClass::kActivations)) +
                           " of activations)";
  if (plan == nullptr || !plan->schedule ||
      (plan->schedule->kind != plan::ScheduleKind::kGpipe))
    return more;
  return more + ", with schedule: 1f1b, which has fewer in flight";
}

// Advice on saving memory, with the bytes that each item affects.
std::vector<std::string> adviceOn(const MemoryTable& table,
                                  const plan::Plan* plan,
                                  const TrainOptions* train) {
  std::vector<std::string> advice;
  const int64_t copies = devicesOfBatch(plan);
  const int64_t zero = plan != nullptr ? plan->zero : 0;
  const auto divided = [&](int stage, MemoryClass memory_class) {
    // 0/1 Adam refuses ZeRO.
    if (copies < 2 || zero >= stage || table.of(memory_class) == 0 ||
        isZeroOne(*train))
      return;
    advice.push_back("zero: " + std::to_string(stage) + " (divides " +
                     FormatBytes(table.of(memory_class)) + " of " +
                     nameOf(memory_class) + " over " + std::to_string(copies) +
                     " devices)");
  };
  if (train != nullptr) {
    divided(1, MemoryClass::kStates);
    divided(2, MemoryClass::kGradients);
    divided(3, MemoryClass::kParameters);
    if (table.of(MemoryClass::kStates) > 0)
      advice.push_back("offload: optimizer (keeps " +
                       FormatBytes(table.of(MemoryClass::kStates)) +
                       " of optimizer states on the host)");
    if (!isAllRecomputed(plan, *train))
      advice.push_back("recompute: full, or budget (less than " +
                       FormatBytes(table.of(MemoryClass::kActivations)) +
                       " of activations)");
    advice.push_back(adviceOnMicrobatches(table, plan));
  }
  if (plan == nullptr || !plan->precision ||
      *plan->precision == plan::Precision::kF32)
    advice.push_back("precision: bf16");
  advice.push_back("a smaller batch, or more devices");
  return advice;
}

}  // namespace

std::optional<MemoryLimit> findLimit(const plan::Plan* plan,
                                     std::optional<int64_t> option) {
  if (plan && plan->memory && plan->fields.count("memory") > 0)
    return MemoryLimit{
        *plan->memory,
        plan::Where(*plan, plan->fields.at("memory")) + ": memory"};
  if (option) return MemoryLimit{*option, "--memory"};
  if (plan && plan->memory) return MemoryLimit{*plan->memory, "memory"};
  return std::nullopt;
}

mlir::LogicalResult checkMemory(mlir::ModuleOp module, const MemoryTable& table,
                                const MemoryLimit& limit,
                                const plan::Plan* plan,
                                const TrainOptions* train) {
  if (table.total() <= limit.bytes) return mlir::success();
  auto error = mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
               << limit.where << ": expected at most "
               << FormatBytes(limit.bytes) << " a device, found "
               << FormatBytes(table.total()) << ": " << toText(table)
               << "; what would help: "
               << llvm::join(adviceOn(table, plan, train), "; ");
  for (const MemoryPart& part :
       llvm::ArrayRef(table.parts).take_front(kPartsShown))
    error.attachNote(part.loc)
        << FormatBytes(part.bytes) << " of " << nameOf(part.memory_class)
        << (part.name.empty() ? "" : ": " + part.name);
  return error;
}

bool statesOnHost(const plan::Plan* plan) {
  return plan != nullptr && plan->offload == plan::Offload::kOptimizer;
}

program::MemoryTableT toProgram(const MemoryTable& table) {
  program::MemoryTableT result;
  result.parameters = table.of(MemoryClass::kParameters);
  result.states = table.of(MemoryClass::kStates);
  result.gradients = table.of(MemoryClass::kGradients);
  result.activations = table.of(MemoryClass::kActivations);
  result.communication = table.of(MemoryClass::kCommunication);
  result.derived = table.of(MemoryClass::kDerived);
  result.ports = table.of(MemoryClass::kPorts);
  result.scratch = table.of(MemoryClass::kScratch);
  result.gaps = table.gaps;
  result.most_gradients = table.most_gradients;
  result.host = table.host;
  result.files = table.files;
  return result;
}

llvm::json::Object toJson(const MemoryTable& table) {
  llvm::json::Object object{{"total", table.total()},
                            {"gaps", table.gaps},
                            {"most_gradients", table.most_gradients},
                            {"host", table.host},
                            {"files", table.files}};
  for (int i = 0; i < memory::kMemoryClasses; ++i)
    object[nameOf(static_cast<MemoryClass>(i), /*key=*/true)] =
        table.at_peak[i];
  return object;
}

std::string toText(const MemoryTable& table) {
  std::string text;
  for (int i = 0; i < memory::kMemoryClasses; ++i)
    if (table.at_peak[i] > 0)
      text += (text.empty() ? "" : ", ") + nameOf(static_cast<MemoryClass>(i)) +
              " " + FormatBytes(table.at_peak[i]);
  if (table.files > 0)
    text += "; in files " + nameOf(MemoryClass::kStates) + " " +
            FormatBytes(table.files) + ", their buffers on the host " +
            FormatBytes(table.host);
  else if (table.host > 0)
    text += "; on the host " + nameOf(MemoryClass::kStates) + " " +
            FormatBytes(table.host);
  return text;
}

}  // namespace partita::driver
