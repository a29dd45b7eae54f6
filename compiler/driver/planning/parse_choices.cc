// Parses --row (sizes of a model) and --fix (choices that the search must
// keep).
#include "compiler/driver/planning/parse_choices.h"

#include "compiler/plan/text.h"
#include "compiler/planner/published/frameworks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

namespace partita::driver {
namespace {

using absl::InvalidArgumentError;
using absl::StatusOr;
using llvm::StringRef;

constexpr char kFixedKeys[] =
    "tp, pp, dp, cp, ep, vpp, zero, mbs, sp (y, n), offload (y, n), recompute "
    "(none, selective, full) or schedule (1f1b, gpipe, zb-h1, zb-v)";

// Columns of a sweep's table that --row does not take, and the option to use
// instead.
constexpr std::pair<const char*, const char*> kOtherOptions[] = {
    {"tp", "chosen: --fix tp=... sets it"},
    {"pp", "chosen: --fix pp=... sets it"},
    {"dp", "chosen: --fix dp=... sets it"},
    {"cp", "chosen: --fix cp=... sets it"},
    {"vpp", "chosen: --fix vpp=... sets it"},
    {"mbs", "chosen: --fix mbs=... sets it"},
    {"sp", "chosen: --fix sp=... sets it"},
    {"recompute", "chosen: --fix recompute=... sets it"},
    {"zero_stage", "chosen: --fix zero=... sets it"},
    {"ep", "chosen: --fix ep=... sets it"},
    {"etp", "chosen: leave it out"},
    {"gbs", "given as --batch"},
    {"n_gpus", "given as --devices, or in --cluster"},
    {"gpu", "given as --cluster"},
    {"gpus_per_node", "given as --cluster"},
    {"inter_node", "given as --cluster"},
    {"precision", "given as --precision"}};

bool setWord(StringRef key, StringRef value, planner::FixedChoices& fixed) {
  using planner::PipelineSchedule;
  using planner::Recomputation;
  if (value == "y" || value == "n")
    for (const auto& [name, field] : {std::pair("sp", &fixed.sequence_parallel),
                                      std::pair("offload", &fixed.offload)})
      if (key == name) {
        *field = value == "y";
        return true;
      }
  if (key == "recompute")
    for (Recomputation each : {Recomputation::kNone, Recomputation::kSelective,
                               Recomputation::kFull})
      if (value == planner::ToString(each)) {
        fixed.recompute = each;
        return true;
      }
  if (key == "schedule")
    for (PipelineSchedule each :
         {PipelineSchedule::k1F1B, PipelineSchedule::kGpipe,
          PipelineSchedule::kZbH1, PipelineSchedule::kZbV})
      if (value == planner::ToString(each)) {
        fixed.schedules = {each};
        return true;
      }
  return false;
}

bool setNumber(StringRef key, int64_t value, planner::FixedChoices& fixed) {
  const std::pair<const char*, std::optional<int>*> fields[] = {
      {"tp", &fixed.tp},    {"pp", &fixed.pp}, {"dp", &fixed.dp},
      {"cp", &fixed.cp},    {"ep", &fixed.ep}, {"vpp", &fixed.vpp},
      {"zero", &fixed.zero}};
  for (const auto& [name, field] : fields)
    if (key == name) {
      *field = static_cast<int>(value);
      return true;
    }
  if (key != "mbs") return false;
  fixed.microbatch = value;
  return true;
}

}  // namespace

StatusOr<planner::SweepRow> parseRow(const std::string& text) {
  std::vector<std::string> header, cells;
  llvm::SmallVector<StringRef> fields;
  StringRef(text).split(fields, ',');
  for (StringRef field : fields) {
    const auto [key, value] = field.split('=');
    header.push_back(key.trim().str());
    cells.push_back(value.trim().str());
  }
  const std::vector<std::string> named = header;
  // A table has a batch size; here it is --batch.
  header.push_back("gbs");
  cells.push_back("1");
  for (const std::string& column : named)
    if (!llvm::is_contained(planner::RowColumns(), column))
      return InvalidArgumentError("--row: expected NAME=VALUE with " +
                                  plan::Join(planner::RowColumns()) +
                                  ", found " + plan::Quote(column) +
                                  plan::Suggest(column, planner::RowColumns()));
  for (const auto& [column, option] : kOtherOptions)
    if (llvm::is_contained(named, column))
      return InvalidArgumentError("--row: expected sizes of a model, found '" +
                                  std::string(column) + "', which is " +
                                  option);
  for (const char* column : {"layers", "hidden", "heads", "seq_len"})
    if (const auto times = llvm::count(named, column); times != 1)
      return InvalidArgumentError(
          "--row: expected layers, hidden, heads and seq_len, each once, "
          "found " +
          std::string(times == 0 ? "no '" : "more than one '") + column + "'");
  std::vector<planner::CsvRow> table(2);
  table[0].cells = header;
  table[1].cells = cells;
  StatusOr<std::vector<planner::SweepRow>> rows =
      planner::ReadSweep(table, "--row", std::nullopt);
  if (!rows.ok()) return rows.status();
  const planner::SweepRow& row = rows->front();
  if (!row.problem.empty())
    return InvalidArgumentError("--row: " + row.problem);
  if (!row.other_framework.empty())
    return InvalidArgumentError(
        "--row: framework: expected one of " +
        plan::Join(planner::FrameworkNames()) + ", found " +
        plan::Quote(row.other_framework) +
        plan::Suggest(row.other_framework, planner::FrameworkNames()));
  return row;
}

StatusOr<planner::FixedChoices> parseFixed(
    const std::vector<std::string>& texts) {
  planner::FixedChoices fixed;
  llvm::StringSet<> named;
  for (const std::string& text : texts) {
    llvm::SmallVector<StringRef> fields;
    StringRef(text).split(fields, ',');
    for (StringRef field : fields) {
      const auto [key, value] = field.split('=');
      int64_t number = 0;
      const bool is_number =
          !value.getAsInteger(10, number) && number >= 0 && number < (1 << 24);
      if (!named.insert(key).second)
        return InvalidArgumentError("--fix: expected each name once, found '" +
                                    key.str() + "' again as '" + field.str() +
                                    "': leave out one");
      const bool known = is_number ? setNumber(key, number, fixed)
                                   : setWord(key, value, fixed);
      if (!known)
        return InvalidArgumentError("--fix: expected NAME=VALUE with " +
                                    std::string(kFixedKeys) + ", found '" +
                                    field.str() + "'");
    }
  }
  return fixed;
}

}  // namespace partita::driver
