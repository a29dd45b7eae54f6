// Options and files of schedules; drawing is in compiler/core.
#include "compiler/driver/inspect/inspect_schedule.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "compiler/core/schedule_csv.h"
#include "compiler/driver/console.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/atomic_file.h"

namespace partita::driver {

using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

absl::StatusOr<core::StageCost> parseStageCost(const std::string& text,
                                               double& transfer) {
  core::StageCost cost;
  const std::map<std::string, double*> places = {{"F", &cost.forward},
                                                 {"B", &cost.backward},
                                                 {"I", &cost.input_grad},
                                                 {"W", &cost.weight_grad},
                                                 {"T", &transfer}};
  for (llvm::StringRef part : llvm::split(text, ',')) {
    if (text.empty()) break;
    const auto [name, number] = part.split('=');
    const auto place = places.find(name.trim().str());
    const std::string value = number.trim().str();
    char* end = nullptr;
    const double parsed = std::strtod(value.c_str(), &end);
    if (place == places.end() || value.empty() || *end != '\0' ||
        !std::isfinite(parsed) || parsed < 0)
      return absl::InvalidArgumentError(
          "--costs: expected times of at least 0 for F, B, I, W and T "
          "(transfers), as in F=1,B=2,I=1,W=1,T=0.1, found '" +
          part.str() + "'");
    *place->second = parsed;
  }
  return cost;
}

Value inspectSchedule(const core::Schedule& schedule,
                      const core::Costs& costs) {
  const core::Timetable table = core::MakeTimetable(schedule, costs);
  Array rows, bubbles, in_flight;
  const std::string csv = core::WriteScheduleCsv(schedule);
  for (llvm::StringRef row :
       llvm::split(llvm::StringRef(csv).rtrim('\n'), '\n'))
    rows.push_back(row.str());
  for (double bubble : table.rank_bubble) bubbles.push_back(bubble);
  for (int peak : core::PeakInFlight(schedule)) in_flight.push_back(peak);
  return Object{{"kind", "schedule"},
                {"ranks", schedule.ranks()},
                {"stages", schedule.stages},
                {"microbatches", schedule.microbatches},
                {"steps_drawn", table.microbatches / schedule.microbatches},
                {"rank_of_stage", Array(schedule.rank_of_stage)},
                {"rows", std::move(rows)},
                {"step", table.step},
                {"bubble", table.bubble},
                {"rank_bubble", std::move(bubbles)},
                {"in_flight", std::move(in_flight)}};
}

namespace {

std::string textOf(const core::Schedule& schedule,
                   const core::Timetable& table) {
  std::string text = core::DrawText(table);
  if (!schedule.flushes)
    text = "no flush between steps: the first " +
           std::to_string(table.microbatches / schedule.microbatches) +
           " steps of a run, " + std::to_string(schedule.microbatches) +
           " microbatches each\n" + text;
  return text;
}

}  // namespace

absl::Status showSchedule(const core::Schedule& schedule,
                          const ScheduleView& view) {
  core::Costs costs;
  auto cost = parseStageCost(view.costs, costs.transfer);
  if (!cost.ok()) return cost.status();
  costs.stages.assign(schedule.stages, *cost);
  if (!view.output.empty()) {
    absl::Status written = base::WriteFileAtomically(
        view.output, core::DrawSvg(core::MakeTimetable(schedule, costs)));
    if (!written.ok()) return written;
  }
  if (view.json)
    results() << inspectSchedule(schedule, costs) << "\n";
  else if (view.output.empty())
    results() << textOf(schedule, core::MakeTimetable(schedule, costs));
  return absl::OkStatus();
}

}  // namespace partita::driver
