// Tables of the names that plan fields accept.
#include "compiler/plan/names.h"

namespace partita::plan {

const std::vector<std::string>& FieldNames() {
  static const auto* const names = new std::vector<std::string>{
      "mesh",   "shard",     "zero",      "gather",  "microbatches", "schedule",
      "stages", "recompute", "precision", "offload", "attention",    "experts",
      "memory", "overrides", "budgets",   "names"};
  return *names;
}

const std::vector<std::string>& BudgetKinds() {
  static const auto* const kinds = new std::vector<std::string>{
      "all_gather", "all_reduce", "reduce_scatter", "all_to_all", "exchange",
      "permute",    "send_rows",  "return_rows",    "total"};
  return *kinds;
}

const NameTable<ScheduleKind>& ScheduleNames() {
  static const auto* const words = new NameTable<ScheduleKind>{
      {"gpipe", ScheduleKind::kGpipe},        {"1f1b", ScheduleKind::k1F1B},
      {"zb-h1", ScheduleKind::kZbH1},         {"zb-v", ScheduleKind::kZbV},
      {"async-2bw", ScheduleKind::kAsync2bw}, {"async", ScheduleKind::kAsync}};
  return *words;
}

const std::vector<std::string>& ScheduleExamples() {
  static const auto* const names = new std::vector<std::string>{
      "gpipe", "1f1b",      "interleaved(2)", "zb-h1",
      "zb-v",  "async-2bw", "async",          "a file.csv"};
  return *names;
}

const NameTable<RecomputePolicy>& RecomputeNames() {
  static const auto* const words =
      new NameTable<RecomputePolicy>{{"none", RecomputePolicy::kNone},
                                     {"selective", RecomputePolicy::kSelective},
                                     {"full", RecomputePolicy::kFull},
                                     {"budget", RecomputePolicy::kBudget}};
  return *words;
}

const NameTable<Precision>& PrecisionNames() {
  static const auto* const words = [] {
    auto* made = new NameTable<Precision>;
    for (Precision each :
         {Precision::kF32, Precision::kBF16, Precision::kF16, Precision::kF8})
      made->push_back({ToString(each), each});
    return made;
  }();
  return *words;
}

const NameTable<Offload>& OffloadNames() {
  static const auto* const words = new NameTable<Offload>{
      {"none", Offload::kNone}, {"optimizer", Offload::kOptimizer}};
  return *words;
}

const NameTable<LongAttention>& AttentionNames() {
  static const auto* const words =
      new NameTable<LongAttention>{{"gather", LongAttention::kGather},
                                   {"ulysses", LongAttention::kUlysses},
                                   {"ring", LongAttention::kRing}};
  return *words;
}

const NameTable<ExpertExchange>& ExpertNames() {
  static const auto* const words = new NameTable<ExpertExchange>{
      {"gather", ExpertExchange::kGather}, {"rows", ExpertExchange::kRows}};
  return *words;
}

const NameTable<Hold>& HoldNames() {
  static const auto* const words =
      new NameTable<Hold>{{"use", Hold::kUse}, {"step", Hold::kStep}};
  return *words;
}

}  // namespace partita::plan
