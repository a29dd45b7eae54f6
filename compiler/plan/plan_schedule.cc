// Builds the schedule of a plan and checks that the two agree.
#include "compiler/plan/plan_schedule.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "compiler/core/check_schedule.h"
#include "compiler/core/schedule_csv.h"
#include "compiler/core/schedule_generators.h"
#include "compiler/core/transfers.h"
#include "compiler/plan/names.h"
#include "compiler/plan/text.h"

namespace partita::plan {
namespace {

using absl::Status;
using absl::StatusOr;

// Larger tables are typing errors, or would take minutes to check.
constexpr int64_t kMostCells = int64_t{1} << 20;

class ScheduleMaker {
 public:
  ScheduleMaker(const Plan& plan, bool trains) : plan_(plan), trains_(trains) {
    ranks_ = core::SizeOf(DepthAxes(plan));
    microbatches_ = trains ? plan.microbatches : 1;
    if (plan.schedule.has_value()) given_ = *plan.schedule;
  }

  StatusOr<core::Schedule> Make() const {
    if (Status status = CheckHasDepth("shard"); !status.ok()) return status;
    StatusOr<core::Schedule> schedule =
        given_.kind == ScheduleKind::kFile ? Read() : Generate();
    if (!schedule.ok()) return schedule.status();
    if (!trains_) schedule = core::ForwardOnly(*std::move(schedule));
    Status status = CheckStages(schedule->stages);
    if (status.ok()) status = RefuseTable(core::CheckSchedule(*schedule));
    if (status.ok())
      status = RefuseTable(
          core::CheckTransfers(*schedule, core::PlaceTransfers(*schedule)));
    if (!status.ok()) return status;
    return schedule;
  }

  // Refuses a plan without D if one of its fields needs a pipeline. `otherwise`
  // is the field to name if none does; "" accepts such a plan.
  Status CheckHasDepth(const std::string& otherwise) const {
    if (!DepthAxes(plan_).empty()) return absl::OkStatus();
    const std::string field = plan_.schedule.has_value() ? "schedule"
                              : !plan_.stages.empty()    ? "stages"
                                                         : otherwise;
    for (const Entry& entry : plan_.shard)
      if (!entry.stages.empty())
        return absl::InvalidArgumentError(
            Where(plan_, entry.where) +
            ": shard stage: expected devices along D, which run the stages of "
            "a pipeline, as shard: [{D: pipe}], found none; divide D or say "
            "with 'at' which layers it is for");
    if (field.empty()) return absl::OkStatus();
    return Refuse(
        field,
        "expected devices along D, which run the stages of a "
        "pipeline, as shard: [{D: pipe}], found none; divide D" +
            std::string(field == "shard" ? "" : " or leave the field out"));
  }

 private:
  std::string FieldPlace(const std::string& field) const {
    const auto it = plan_.fields.find(field);
    return it == plan_.fields.end() ? "--" + field
                                    : Where(plan_, it->second) + ": " + field;
  }
  Status Refuse(const std::string& field, const std::string& what) const {
    return absl::InvalidArgumentError(FieldPlace(field) + ": " + what);
  }
  // Names the plan's `schedule` field in an error of core. OK stays OK.
  Status RefuseSchedule(const Status& status,
                        const std::string& table = "") const {
    if (status.ok()) return status;
    std::string what(status.message());
    for (const std::string own : {"schedule: ", "schedule "})
      if (what.compare(0, own.size(), own) == 0) what.erase(0, own.size());
    return Refuse("schedule", (table.empty() ? "" : table + ": ") + what);
  }

  // Same as RefuseSchedule, naming the table's file if there is one.
  Status RefuseTable(const Status& status) const {
    return RefuseSchedule(
        status, given_.kind == ScheduleKind::kFile ? Quote(PathOfTable()) : "");
  }

  StatusOr<core::Schedule> Generate() const {
    const int64_t each = StagesPerDevice(given_);
    if (given_.kind == ScheduleKind::kInterleaved && each < 2)
      return Refuse("schedule",
                    "interleaved: expected at least 2 stages per device, "
                    "found " +
                        std::to_string(each) + "; 1f1b is that of 1");
    const bool flushes = given_.kind != ScheduleKind::kAsync &&
                         given_.kind != ScheduleKind::kAsync2bw;
    // A schedule without a flush is checked over as many steps as there are
    // ranks.
    const int64_t columns =
        flushes ? microbatches_ : std::max(microbatches_, ranks_);
    if (ranks_ > kMostCells / columns / each)
      return Refuse("schedule",
                    "expected a table of at most " +
                        std::to_string(kMostCells) + " cells, found " +
                        std::to_string(ranks_) + " devices along D, " +
                        std::to_string(each) + " stages each, " +
                        std::to_string(microbatches_) + " microbatches");
    const int ranks = static_cast<int>(ranks_);
    const int microbatches = static_cast<int>(microbatches_);
    switch (given_.kind) {
      case ScheduleKind::kGpipe:
        return core::GPipe(ranks, microbatches);
      case ScheduleKind::kInterleaved:
        return core::Interleaved(ranks, static_cast<int>(each), microbatches);
      case ScheduleKind::kZbH1:
        return core::ZeroBubbleH1(ranks, microbatches);
      case ScheduleKind::kZbV:
        return core::ZeroBubbleV(ranks, microbatches);
      case ScheduleKind::kAsync2bw:
        // Without training, weights do not change, so there is only one
        // version.
        if (!trains_) return core::GPipe(ranks, microbatches);
        return RefuseSchedule(core::Async2bw(ranks, microbatches));
      case ScheduleKind::kAsync:
        if (!trains_) return core::GPipe(ranks, microbatches);
        return core::Async(ranks, microbatches);
      case ScheduleKind::k1F1B:
      case ScheduleKind::kFile:
        break;
    }
    return core::OneForwardOneBackward(ranks, microbatches);
  }

  StatusOr<core::Schedule> RefuseSchedule(
      StatusOr<core::Schedule> schedule) const {
    if (!schedule.ok()) return RefuseSchedule(schedule.status());
    return schedule;
  }

  std::string PathOfTable() const {
    const std::filesystem::path path = given_.file;
    const auto field = plan_.fields.find("schedule");
    const bool in_file = field != plan_.fields.end() && field->second.line > 0;
    if (!in_file || path.is_absolute()) return path.string();
    return (std::filesystem::path(plan_.origin).parent_path() / path).string();
  }

  StatusOr<core::Schedule> Read() const {
    const std::string path = PathOfTable();
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    std::error_code ignored;
    if (file) text << file.rdbuf();
    if (!file || std::filesystem::is_directory(path, ignored))
      return Refuse("schedule",
                    "expected a table to read, found no file " + Quote(path));
    StatusOr<core::Schedule> table = core::ReadScheduleCsv(text.str(), path);
    if (!table.ok()) return RefuseSchedule(table.status());
    if (table->ranks() != ranks_)
      return Refuse("schedule",
                    "expected a row for each of the " + std::to_string(ranks_) +
                        " devices along D, found " +
                        std::to_string(table->ranks()) + " in " + Quote(path));
    if (table->microbatches != microbatches_)
      return Refuse(
          "schedule",
          "expected " + Counted(microbatches_) +
              (trains_ ? ", as the plan says" : ", as nothing is trained") +
              ", found " + Counted(table->microbatches) + " in " + Quote(path) +
              (trains_ ? "; set microbatches: " +
                             std::to_string(table->microbatches)
                       : ""));
    if (trains_ && !table->trains)
      return Refuse("schedule",
                    "expected a table of forwards and backwards (B, or I and "
                    "W), found forwards alone in " +
                        Quote(path));
    return table;
  }

  static std::string Counted(int64_t microbatches) {
    return std::to_string(microbatches) +
           (microbatches == 1 ? " microbatch" : " microbatches");
  }

  Status CheckStages(int64_t stages) const {
    for (const Entry& entry : plan_.shard)
      for (int stage : entry.stages)
        if (stage >= stages)
          return absl::InvalidArgumentError(
              Where(plan_, entry.where) + ": shard stage: expected a stage " +
              (stages == 1 ? "0" : "from 0 to " + std::to_string(stages - 1)) +
              " of the schedule's " + std::to_string(stages) + ", found " +
              std::to_string(stage));
    const auto found = static_cast<int64_t>(plan_.stages.size());
    if (plan_.stages.empty() || found == stages) return absl::OkStatus();
    return Refuse("stages",
                  "expected " + std::to_string(stages) +
                      ", as the schedule has for " + std::to_string(ranks_) +
                      " devices along D, found " + std::to_string(found) +
                      "; list that many, or set it to auto");
  }

  const Plan& plan_;
  const bool trains_;
  int64_t ranks_ = 1, microbatches_ = 1;
  Schedule given_;
};

}  // namespace

std::vector<core::AxisRef> DepthAxes(const Plan& plan) {
  std::vector<core::AxisRef> axes;
  for (const Entry& entry : plan.shard)
    for (const ShardedDimension& sharded : entry.dimensions)
      if (sharded.dimension == "D")
        axes.insert(axes.end(), sharded.axes.begin(), sharded.axes.end());
  return axes;
}

int64_t StagesPerDevice(const Schedule& schedule) {
  switch (schedule.kind) {
    case ScheduleKind::kInterleaved:
      return schedule.chunks;
    case ScheduleKind::kZbV:
      return 2;
    case ScheduleKind::kFile:
      return 0;
    default:
      return 1;
  }
}

Status CheckPipeline(const Plan& plan) {
  return ScheduleMaker(plan, /*trains=*/true).CheckHasDepth("");
}

StatusOr<core::Schedule> ScheduleOf(const Plan& plan, bool trains) {
  return ScheduleMaker(plan, trains).Make();
}

}  // namespace partita::plan
