// Command-line options that set parts of a plan.
#include "compiler/plan/glob.h"
#include "compiler/plan/names.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/text.h"

namespace partita::plan {
namespace {

using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;

Status Prefixed(const std::string& option, const Status& status) {
  return InvalidArgumentError(option + ": " + std::string(status.message()));
}

// Parses "M=tensor+fsdp".
StatusOr<ShardedDimension> ParseShardedDimension(const std::string& text,
                                                 const core::Mesh& mesh) {
  const size_t equal = text.find('=');
  if (equal == std::string::npos)
    return InvalidArgumentError(
        "expected a dimension and its axes, as M=tensor or B=data+fsdp, "
        "found " +
        Quote(Trim(text)));
  ShardedDimension sharded;
  sharded.dimension = Trim(text.substr(0, equal));
  for (const std::string& word : SplitOutside(text.substr(equal + 1), '+')) {
    StatusOr<core::AxisRef> axis = ParseAxis(word, mesh);
    if (!axis.ok()) return axis.status();
    sharded.axes.push_back(*axis);
  }
  return sharded;
}

// Parses "stages.{0,1}.*" or "stage(0+1)".
Status ParseScope(const std::string& text, Entry& entry) {
  const std::string begin = "stage(";
  if (text.compare(0, begin.size(), begin) != 0 || text.back() != ')') {
    entry.at.push_back(text);
    return absl::OkStatus();
  }
  const std::string inside =
      text.substr(begin.size(), text.size() - begin.size() - 1);
  for (const std::string& word : SplitOutside(inside, '+')) {
    const StatusOr<int64_t> stage = ParseCount(Trim(word));
    if (!stage.ok() || *stage >= kMostStages)
      return InvalidArgumentError(
          "stage: expected stages of the pipeline, from 0, as @stage(0) or "
          "@stage(0+1), found " +
          Quote(text));
    entry.stages.push_back(static_cast<int>(*stage));
  }
  return absl::OkStatus();
}

// Splits at ';'. A trailing ';' is allowed.
std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> parts = SplitOutside(text, ';');
  if (parts.size() > 1 && Trim(parts.back()).empty()) parts.pop_back();
  return parts;
}

}  // namespace

StatusOr<core::Mesh> ParseMeshOption(const std::string& text) {
  core::Mesh mesh;
  for (const std::string& part : SplitOutside(text, ',')) {
    const size_t equal = part.find('=');
    const StatusOr<int64_t> size = ParseCount(
        equal == std::string::npos ? "" : Trim(part.substr(equal + 1)));
    if (!size.ok())
      return InvalidArgumentError(
          "--mesh: expected axes and their sizes, as data=2,tensor=4, found " +
          Quote(Trim(part)));
    mesh.axes.push_back({Trim(part.substr(0, equal)), *size});
  }
  if (Status status = CheckMesh(mesh); !status.ok())
    return Prefixed("--mesh", status);
  return mesh;
}

StatusOr<std::vector<Entry>> ParseShardOption(const std::string& text,
                                              const core::Mesh& mesh) {
  Plan plan;
  plan.origin = "--shard";
  plan.mesh = mesh;
  for (const std::string& part : SplitList(text)) {
    Entry entry;
    const size_t scope = part.find('@');
    if (scope != std::string::npos)
      if (Status status = ParseScope(Trim(part.substr(scope + 1)), entry);
          !status.ok())
        return Prefixed(plan.origin, status);
    for (const std::string& word : SplitOutside(part.substr(0, scope), ',')) {
      StatusOr<ShardedDimension> sharded = ParseShardedDimension(word, mesh);
      if (!sharded.ok()) return Prefixed(plan.origin, sharded.status());
      entry.dimensions.push_back(*std::move(sharded));
    }
    plan.shard.push_back(std::move(entry));
  }
  if (Status status = CheckPlan(plan); !status.ok()) return status;
  return plan.shard;
}

StatusOr<std::vector<Recompute>> ParseRecomputeOption(const std::string& text) {
  Plan plan;
  plan.origin = "--recompute";
  std::vector<std::string> names;
  for (const auto& [word, policy] : RecomputeNames()) names.push_back(word);
  for (const std::string& part : SplitList(text)) {
    Recompute rule;
    const size_t scope = part.find('@');
    if (scope != std::string::npos)
      rule.at.push_back(Trim(part.substr(scope + 1)));
    const std::string word = Trim(part.substr(0, scope));
    bool known = false;
    for (const auto& [name, policy] : RecomputeNames()) {
      if (name != word) continue;
      rule.policy = policy;
      known = true;
    }
    if (!known)
      return InvalidArgumentError("--recompute: expected " + Join(names) +
                                  ", found " + Quote(word) +
                                  Suggest(word, names));
    plan.recompute.push_back(std::move(rule));
  }
  if (Status status = CheckPlan(plan); !status.ok()) return status;
  return plan.recompute;
}

StatusOr<LongAttention> ParseAttentionOption(const std::string& text) {
  std::vector<std::string> names;
  for (const auto& [name, way] : AttentionNames()) {
    if (name == text) return way;
    names.push_back(name);
  }
  return InvalidArgumentError("--attention: expected " + Join(names) +
                              ", found " + Quote(text) + Suggest(text, names));
}

StatusOr<Experts> ParseExpertsOption(const std::string& text) {
  Experts experts;
  std::string word = Trim(text), number;
  if (const size_t equal = word.find('='); equal != std::string::npos) {
    number = Trim(word.substr(equal + 1));
    word = Trim(word.substr(0, equal));
  }
  std::vector<std::string> names;
  for (const auto& [name, way] : ExpertNames()) {
    if (name == word) experts.exchange = way;
    names.push_back(name);
  }
  const StatusOr<double> rows = ParseFactor(number);
  if (rows.ok()) experts.rows = *rows;
  const bool bounds = text.find('=') != std::string::npos;
  if (!experts.exchange ||
      (bounds && (!rows.ok() || experts.exchange != ExpertExchange::kRows)))
    return InvalidArgumentError(
        "--experts: expected gather, rows, or rows=1.25 (rows per device at "
        "most, over the even share), found " +
        Quote(text) + (experts.exchange ? "" : Suggest(word, names)));
  return experts;
}

StatusOr<Schedule> ParseSchedule(const std::string& text) {
  const std::string interleaved = "interleaved(";
  const auto ends_in = [&](const std::string& end) {
    return text.size() > end.size() &&
           text.compare(text.size() - end.size(), end.size(), end) == 0;
  };
  if (text.compare(0, interleaved.size(), interleaved) == 0 && ends_in(")")) {
    const std::string count =
        text.substr(interleaved.size(), text.size() - interleaved.size() - 1);
    const StatusOr<int64_t> chunks = ParseCount(count);
    if (!chunks.ok() || *chunks < 2 || *chunks > 1 << 16)
      return InvalidArgumentError(
          "interleaved: expected a whole number from 2 to 65536 of stages per "
          "device, found " +
          Quote(count));
    return Schedule{ScheduleKind::kInterleaved, *chunks, ""};
  }
  if (ends_in(".csv")) return Schedule{ScheduleKind::kFile, 1, text};
  for (const auto& [name, kind] : ScheduleNames())
    if (name == text) return Schedule{kind, 1, ""};
  return InvalidArgumentError("expected " + Join(ScheduleExamples()) +
                              ", found " + Quote(text) +
                              Suggest(text, ScheduleExamples()));
}

StatusOr<Name> ParseName(const std::string& text) {
  // Tensor names may contain ':' and '=', so split at the last ones.
  const size_t equal = text.rfind('=');
  const size_t colon =
      equal == std::string::npos ? equal : text.rfind(':', equal);
  const StatusOr<int64_t> dim =
      ParseCount(colon == std::string::npos
                     ? ""
                     : Trim(text.substr(colon + 1, equal - colon - 1)));
  if (!dim.ok() || *dim > 64)
    return InvalidArgumentError(
        "expected a tensor, a dimension's number and its name, as "
        "h.*.up.weight:1=M, found " +
        Quote(text));
  Name name;
  name.tensor = Trim(text.substr(0, colon));
  name.dim = static_cast<int>(*dim);
  name.dimension = Trim(text.substr(equal + 1));
  if (Status status = CheckGlob(name.tensor); !status.ok()) return status;
  if (Status status = CheckDimensionName(name.dimension); !status.ok())
    return status;
  return name;
}

}  // namespace partita::plan
