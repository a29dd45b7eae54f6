// The planner's search and its reasons, as JSON and as a table.
#include "compiler/driver/planning/choose_plan.h"

#include <chrono>

#include "compiler/plan/text.h"
#include "compiler/planner/rationale.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/atomic_file.h"

namespace partita::driver {
namespace {

using absl::InvalidArgumentError;
using absl::StatusOr;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

constexpr char kFixedWords[] =
    "tp, pp, dp, cp, vpp, zero, mbs, sp (y, n), offload (y, n), recompute "
    "(none, selective, full) or schedule (1f1b, gpipe, zb-h1, zb-v)";

// Columns of a sweep's table that say nothing of a model, and what does.
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
    {"ep", "chosen: leave it out"},
    {"etp", "chosen: leave it out"},
    {"gbs", "given as --batch"},
    {"n_gpus", "given as --devices, or in --cluster"},
    {"gpu", "given as --cluster"},
    {"gpus_per_node", "given as --cluster"},
    {"inter_node", "given as --cluster"},
    {"precision", "given as --precision"}};

Object toJson(const planner::Architecture& model) {
  return Object{{"kind", planner::ToString(model.kind)},
                {"layers", model.layers},
                {"hidden", model.hidden},
                {"heads", model.heads},
                {"kv_heads", model.kv_heads},
                {"ffn", model.ffn},
                {"seq", model.seq},
                {"vocab", model.vocab}};
}

Value toJson(const planner::Choice& choice) {
  return Object{{"division", planner::Describe(choice.division)},
                {"step_seconds", choice.prediction.step},
                {"memory_bytes", choice.prediction.memory.total()},
                {"host_bytes", choice.prediction.memory.host}};
}

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
      {"tp", &fixed.tp}, {"pp", &fixed.pp},   {"dp", &fixed.dp},
      {"cp", &fixed.cp}, {"vpp", &fixed.vpp}, {"zero", &fixed.zero}};
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
  // A table has one; here it is --batch.
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
        plan::Join(planner::FrameworkWords()) + ", found " +
        plan::Quote(row.other_framework) +
        plan::Suggest(row.other_framework, planner::FrameworkWords()));
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
                                    std::string(kFixedWords) + ", found '" +
                                    field.str() + "'");
    }
  }
  return fixed;
}

StatusOr<Value> choosePlan(const PlanRequest& request) {
  planner::Request asked = request.request;
  if (request.names.layer.empty()) asked.fixed.even_cut = true;
  const auto start = std::chrono::steady_clock::now();
  StatusOr<planner::SearchResult> result = planner::Search(asked);
  if (!result.ok()) return result.status();
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  StatusOr<planner::Rationale> why = planner::Rationalize(asked, *result);
  if (!why.ok()) return why.status();
  const planner::Choice& chosen = result->choices.front();
  StatusOr<plan::Plan> plan =
      planner::PlanOf(asked.architecture, chosen.division, request.names);
  if (!plan.ok()) return plan.status();
  if (asked.memory > 0) plan->memory = static_cast<int64_t>(asked.memory);
  const std::string text = plan::WritePlan(*plan);
  if (!request.output.empty()) {
    auto file = base::AtomicFile::Create(request.output);
    if (!file.ok()) return file.status();
    if (absl::Status status = (*file)->Append(text); !status.ok())
      return status;
    if (absl::Status status = (*file)->Commit(); !status.ok()) return status;
  }
  Object parts;
  for (const planner::StepPart& part : planner::PartsOf(chosen.prediction))
    parts[part.name] = part.seconds;
  Array alternatives, gains;
  for (const planner::Alternative& other : why->alternatives) {
    Value entry = toJson(other.choice);
    (*entry.getAsObject())["slower"] = other.slower;
    (*entry.getAsObject())["why"] = other.why;
    alternatives.push_back(std::move(entry));
  }
  for (const planner::Gain& gain : why->gains)
    gains.push_back(Object{{"what", gain.what}, {"saved_seconds", gain.saved}});
  Value facts = toJson(chosen);
  Object& object = *facts.getAsObject();
  object["kind"] = "plan";
  object["cluster"] = asked.cluster.name;
  object["devices"] = asked.cluster.devices;
  object["batch"] = asked.batch;
  object["model"] = toJson(asked.architecture);
  object["text"] = text;
  object["parts"] = std::move(parts);
  object["gap"] = result->gap;
  object["considered"] = result->considered;
  object["evaluated"] = result->evaluated;
  object["search_seconds"] = taken.count();
  object["binds"] = why->binds;
  object["alternatives"] = std::move(alternatives);
  object["gains"] = std::move(gains);
  object["output"] = request.output;
  return facts;
}

void printChoice(const Value& value, llvm::raw_ostream& stream) {
  const Object& facts = *value.getAsObject();
  const auto number = [](const Object& object, StringRef key) {
    return object.getNumber(key).value_or(0);
  };
  stream << llvm::formatv(
                "# for {0} devices of {1}: a step of {2} x {3} tokens in "
                "{4:f4} s, {5:f1} GB a device\n",
                facts.getInteger("devices").value_or(0),
                facts.getString("cluster").value_or(""),
                facts.getInteger("batch").value_or(0),
                facts.getObject("model")->getInteger("seq").value_or(0),
                number(facts, "step_seconds"),
                number(facts, "memory_bytes") / 1e9)
         << *facts.getString("text")
         << llvm::formatv("\nchosen: {0}\nbinds: {1}\n",
                          *facts.getString("division"),
                          *facts.getString("binds"))
         << llvm::formatv(
                "search: {0} divisions, timetables of {1} cuts into stages in "
                "{2:f2} s; bounds on time and memory ruled out the others: "
                "none is more than {3:f1} % faster\n",
                facts.getInteger("considered").value_or(0),
                facts.getInteger("evaluated").value_or(0),
                number(facts, "search_seconds"), 100 * number(facts, "gap"));
  if (!facts.getArray("alternatives")->empty()) stream << "\nrunners-up:\n";
  for (const Value& each : *facts.getArray("alternatives")) {
    const Object& other = *each.getAsObject();
    stream << llvm::formatv(
        "  {0:f4} s (+{1:f1} %)  {2:f1} GB  {3}\n"
        "      {4}\n",
        number(other, "step_seconds"), 100 * number(other, "slower"),
        number(other, "memory_bytes") / 1e9, *other.getString("division"),
        *other.getString("why"));
  }
  stream << "\nwhat more would save of a step:\n";
  for (const Value& each : *facts.getArray("gains")) {
    const Object& gain = *each.getAsObject();
    stream << llvm::formatv("  {0:f3} ms  {1}\n",
                            1e3 * number(gain, "saved_seconds"),
                            *gain.getString("what"));
  }
  if (StringRef output = *facts.getString("output"); !output.empty())
    stream << "wrote " << output << "\n";
}

}  // namespace partita::driver
