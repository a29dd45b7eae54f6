// The names that fields of a plan file accept, for reading and writing.
#ifndef PARTITA_COMPILER_PLAN_NAMES_H_
#define PARTITA_COMPILER_PLAN_NAMES_H_

#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"

namespace partita::plan {

// A larger number of pipeline stages is taken for a typing error.
inline constexpr int64_t kMostStages = int64_t{1} << 20;

template <typename T>
using NameTable = std::vector<std::pair<std::string, T>>;

const std::vector<std::string>& FieldNames();
const std::vector<std::string>& BudgetKinds();
// Without kInterleaved and kFile, which take arguments.
const NameTable<ScheduleKind>& ScheduleNames();
const NameTable<RecomputePolicy>& RecomputeNames();
// The precisions that the compiler supports.
const NameTable<Precision>& PrecisionNames();
const NameTable<Offload>& OffloadNames();
const NameTable<LongAttention>& AttentionNames();
const NameTable<ExpertExchange>& ExpertNames();
const NameTable<Hold>& HoldNames();

// Every form that `schedule` accepts, with example arguments.
const std::vector<std::string>& ScheduleExamples();

template <typename T>
std::string NameOf(const NameTable<T>& names, T value) {
  for (const auto& [name, meaning] : names)
    if (meaning == value) return name;
  return "";
}

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_NAMES_H_
