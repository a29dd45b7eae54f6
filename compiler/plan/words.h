// The words of a plan's fields, for reading and writing alike.
#ifndef PARTITA_COMPILER_PLAN_WORDS_H_
#define PARTITA_COMPILER_PLAN_WORDS_H_

#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"

namespace partita::plan {

// More of a pipeline are a typing error.
inline constexpr int64_t kMostStages = int64_t{1} << 20;

template <typename T>
using Words = std::vector<std::pair<std::string, T>>;

const std::vector<std::string>& FieldNames();
const std::vector<std::string>& BudgetKinds();
// kInterleaved and kFile have arguments and are not among them.
const Words<ScheduleKind>& ScheduleWords();
const Words<RecomputePolicy>& RecomputeWords();
// Those that the compiler has.
const Words<Precision>& PrecisionWords();
const Words<Offload>& OffloadWords();
const Words<Hold>& HoldWords();

// What may be written there, with arguments as an example has them.
const std::vector<std::string>& ScheduleExamples();

template <typename T>
std::string WordOf(const Words<T>& words, T value) {
  for (const auto& [word, meaning] : words)
    if (meaning == value) return word;
  return "";
}

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_WORDS_H_
