// The names that fields of a plan file may have, for reading and writing.
#ifndef PARTITA_COMPILER_PLAN_NAMES_H_
#define PARTITA_COMPILER_PLAN_NAMES_H_

#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"

namespace partita::plan {

// More of a pipeline are a typing error.
inline constexpr int64_t kMostStages = int64_t{1} << 20;

template <typename T>
using NameTable = std::vector<std::pair<std::string, T>>;

const std::vector<std::string>& FieldNames();
const std::vector<std::string>& BudgetKinds();
// kInterleaved and kFile have arguments and are not among them.
const NameTable<ScheduleKind>& ScheduleNames();
const NameTable<RecomputePolicy>& RecomputeNames();
// Those that the compiler has.
const NameTable<Precision>& PrecisionNames();
const NameTable<Offload>& OffloadNames();
const NameTable<Hold>& HoldNames();

// What may be written there, with arguments as an example has them.
const std::vector<std::string>& ScheduleExamples();

template <typename T>
std::string NameOf(const NameTable<T>& names, T value) {
  for (const auto& [name, meaning] : names)
    if (meaning == value) return name;
  return "";
}

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_NAMES_H_
