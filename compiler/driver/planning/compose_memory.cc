// Memory of the parts of a model: what layers keep, and the ends of a pipeline.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "compiler/driver/planning/compose_price.h"
#include "compiler/plan/plan_schedule.h"
#include "compiler/plan/without_depth.h"
#include "compiler/simulator/memory.h"
#include "llvm/ADT/StringRef.h"
#include "runtime/program/types.h"

namespace partita::driver {
namespace {

// The operations of @main between layers; see compiler/autodiff/segments.cc.
constexpr llvm::StringRef kRun = "segment_";
// Layers of each stage of the pipeline that gives the memory of the ends.
constexpr int64_t kLayersOfStage = 2;
// Stages of the pipeline that gives the memory of a model's ends.
constexpr int kStagesOfBases = 3;

// Forward calls in each entry of the layer that is called most often.
std::vector<int64_t> callsOfRepeated(const program::Program& program) {
  std::map<std::string, std::vector<int64_t>> calls;
  const int entries = static_cast<int>(program.entries()->size());
  for (int entry = 0; entry < entries; ++entry) {
    const auto* main = program.functions()->Get(static_cast<unsigned>(
        program.entries()->Get(static_cast<unsigned>(entry))->main()));
    for (const program::Instruction* instruction : *main->body()) {
      const program::Call* call = instruction->operation_as_Call();
      if (call == nullptr) continue;
      const std::string name =
          program.functions()
              ->Get(static_cast<unsigned>(call->function()))
              ->name()
              ->str();
      if (!llvm::StringRef(name).contains("_forward") ||
          llvm::StringRef(name).starts_with(kRun))
        continue;
      std::vector<int64_t>& of_entries = calls[name];
      of_entries.resize(entries);
      ++of_entries[entry];
    }
  }
  std::vector<int64_t> most(entries);
  for (const auto& [name, of_entries] : calls)
    if (std::accumulate(of_entries.begin(), of_entries.end(), int64_t{0}) >
        std::accumulate(most.begin(), most.end(), int64_t{0}))
      most = of_entries;
  return most;
}

}  // namespace

// Bytes that a layer's forward call keeps for its backward call: the most that
// one forward call in @main returns.
int64_t PriceComposer::savedBytes(const program::Program& program) {
  const auto* main = program.functions()->Get(
      static_cast<unsigned>(program.entries()->Get(0)->main()));
  int64_t most = 0;
  for (unsigned i = 0; i < program::SizeOrZero(main->body()); ++i) {
    const program::Instruction& instruction = *main->body()->Get(i);
    const program::Call* call = instruction.operation_as_Call();
    if (call == nullptr) continue;
    const llvm::StringRef name =
        program.functions()
            ->Get(static_cast<unsigned>(call->function()))
            ->name()
            ->c_str();
    if (!name.contains("_forward") || name.starts_with(kRun)) continue;
    int64_t bytes = 0;
    const int64_t operands = program::SizeOrZero(instruction.operands());
    for (int64_t k = operands - instruction.outputs(); k < operands; ++k)
      bytes += instruction.operands()->Get(static_cast<unsigned>(k))->bytes();
    most = std::max(most, bytes);
  }
  return most;
}

std::optional<PriceComposer::Bases> PriceComposer::basesOf(
    const plan::Plan& plan, const Rates& rates) {
  const std::vector<core::AxisRef> depth = plan::DepthAxes(plan);
  if (depth.size() != 1 || depth.front().size < kStagesOfBases)
    return std::nullopt;
  plan::Plan like = plan;
  plan::ResizeAxis(like, depth.front().axis, kStagesOfBases);
  like.schedule = plan::Schedule{plan::ScheduleKind::k1F1B};
  like.microbatches = kStagesOfBases;
  like.stages.clear();
  like.memory.reset();
  const int64_t batch = model_.batch / plan.microbatches * like.microbatches;
  const auto made =
      compilePipeline(like, kStagesOfBases * kLayersOfStage, batch);
  if (!made) return std::nullopt;
  const auto& program =
      *flatbuffers::GetRoot<program::Program>(made->program.data());
  if (program::SizeOrZero(program.entries()) != kStagesOfBases)
    return std::nullopt;
  Bases bases;
  int64_t* const found[] = {&bases.first, &bases.middle, &bases.last};
  const std::vector<int64_t> calls = callsOfRepeated(program);
  for (int rank = 0; rank < kStagesOfBases; ++rank) {
    const int64_t in_flight = kStagesOfBases - rank;
    const int64_t layers = calls[rank] / like.microbatches;
    *found[rank] = simulator::MemoryOf(program, rank).total() -
                   layers * rates.memory_of_layer -
                   layers * (in_flight - 1) * rates.saved;
  }
  return bases;
}

}  // namespace partita::driver
