// Reads the fields that say how a step runs: gathers, schedule, stages,
// recomputation.
#include "compiler/plan/names.h"
#include "compiler/plan/reader.h"

namespace partita::plan {

using absl::OkStatus;
using absl::Status;
using absl::StatusOr;

Status Reader::ReadGather(const Node& value) {
  if (Status status = CheckMap(value, "gather", {"prefetch", "hold"});
      !status.ok())
    return status;
  Gather gather;
  if (const Node* node = Find(value, "prefetch")) {
    StatusOr<int64_t> count = ReadCount(*node, "gather prefetch", 0, 1 << 16);
    if (!count.ok()) return count.status();
    gather.prefetch = *count;
  }
  if (const Node* node = Find(value, "hold")) {
    StatusOr<Hold> hold = ReadName(*node, "gather hold", HoldNames());
    if (!hold.ok()) return hold.status();
    gather.hold = *hold;
  }
  plan_.gather = gather;
  return OkStatus();
}

Status Reader::ReadExperts(const Node& value) {
  if (Status status = CheckMap(value, "experts", {"exchange", "rows"});
      !status.ok())
    return status;
  Experts experts;
  if (const Node* node = Find(value, "exchange")) {
    StatusOr<ExpertExchange> exchange =
        ReadName(*node, "experts exchange", ExpertNames());
    if (!exchange.ok()) return exchange.status();
    experts.exchange = *exchange;
  }
  if (const Node* node = Find(value, "rows")) {
    const StatusOr<double> rows =
        ParseFactor(node->kind == Node::Kind::kScalar ? node->scalar : "");
    if (!rows.ok())
      return Refuse(*node,
                    "experts rows: " + std::string(rows.status().message()) +
                        ", found " + Describe(*node));
    experts.rows = *rows;
  }
  plan_.experts = experts;
  return OkStatus();
}

// "optimizer", or {optimizer: nvme, path: DIR, buffers: 64 MB}.
Status Reader::ReadOffload(const Node& value) {
  if (value.kind != Node::Kind::kMap) {
    const StatusOr<Offload> offload =
        ReadName(value, "offload", OffloadNames());
    if (offload.ok()) plan_.offload = *offload;
    return offload.status();
  }
  if (Status status = CheckMap(value, "offload",
                               {"optimizer", "path", "buffers"}, {"optimizer"});
      !status.ok())
    return status;
  const NameTable<bool> places = {{"host", false}, {"nvme", true}};
  const StatusOr<bool> in_files =
      ReadName(*Find(value, "optimizer"), "offload optimizer", places);
  if (!in_files.ok()) return in_files.status();
  plan_.offload = Offload::kOptimizer;
  const Node* const path = Find(value, "path");
  const Node* const buffers = Find(value, "buffers");
  if (!*in_files) {
    if (path == nullptr && buffers == nullptr) return OkStatus();
    return Refuse(path != nullptr ? *path : *buffers,
                  "offload: expected path and buffers with optimizer: nvme "
                  "only, found them with host");
  }
  if (path == nullptr || path->kind != Node::Kind::kScalar ||
      path->scalar.empty())
    return Refuse(path == nullptr ? value : *path,
                  "offload: expected path: DIR, the folder for the states of "
                  "optimizer: nvme, found " +
                      (path == nullptr ? "none" : Describe(*path)));
  plan_.state_files = StateFiles{path->scalar};
  if (buffers == nullptr) return OkStatus();
  const StatusOr<int64_t> bytes = ReadBytes(*buffers, "offload buffers");
  if (!bytes.ok()) return bytes.status();
  if (*bytes == 0)
    return Refuse(*buffers,
                  "offload buffers: expected more than 0 bytes, found " +
                      Describe(*buffers) + "; leave it out for the default");
  plan_.state_files->buffers = *bytes;
  return OkStatus();
}

Status Reader::ReadSchedule(const Node& value) {
  if (value.kind != Node::Kind::kScalar)
    return Refuse(value, "schedule: expected " + Join(ScheduleExamples()) +
                             ", found " + Describe(value));
  StatusOr<Schedule> schedule = ParseSchedule(value.scalar);
  if (!schedule.ok()) return Refuse(value, "schedule", schedule.status());
  plan_.schedule = *std::move(schedule);
  return OkStatus();
}

Status Reader::ReadStages(const Node& value) {
  if (value.kind == Node::Kind::kScalar && value.scalar == "auto")
    return OkStatus();
  if (value.kind != Node::Kind::kList || value.children.empty())
    return Refuse(value,
                  "stages: expected auto or a list, as [{to: \"h.7\"}, {to: "
                  "\"h.15\"}], found " +
                      Describe(value));
  for (const Node& item : value.children) {
    if (Status status = CheckMap(item, "stages", {"to", "mesh"}, {"to"});
        !status.ok())
      return status;
    StatusOr<std::string> to = ReadGlob(*Find(item, "to"), "stages to");
    if (!to.ok()) return to.status();
    Stage stage{*to, {}, item.where};
    if (const Node* node = Find(item, "mesh")) {
      StatusOr<core::Mesh> mesh = ReadMesh(*node);
      if (!mesh.ok()) return mesh.status();
      stage.mesh = *std::move(mesh);
    }
    plan_.stages.push_back(std::move(stage));
  }
  return OkStatus();
}

StatusOr<std::vector<int>> Reader::ReadStageNumbers(const Node& value) {
  std::vector<int> stages;
  const bool is_list = value.kind == Node::Kind::kList;
  if (is_list && value.children.empty())
    return Refuse(value,
                  "stage: expected at least one stage of the pipeline, from 0, "
                  "found none");
  for (const Node& item : is_list ? value.children : std::vector<Node>{value}) {
    StatusOr<int64_t> stage = ReadCount(item, "stage", 0, kMostStages - 1);
    if (!stage.ok()) return stage.status();
    stages.push_back(static_cast<int>(*stage));
  }
  return stages;
}

Status Reader::ReadRecompute(const Node& value) {
  if (value.kind != Node::Kind::kList) return ReadRecomputeRule(value);
  for (const Node& item : value.children)
    if (Status status = ReadRecomputeRule(item); !status.ok()) return status;
  return OkStatus();
}

Status Reader::ReadRecomputeRule(const Node& value) {
  Recompute rule;
  const Node* policy = &value;
  if (value.kind == Node::Kind::kMap) {
    if (Status status =
            CheckMap(value, "recompute", {"at", "policy"}, {"at", "policy"});
        !status.ok())
      return status;
    StatusOr<std::vector<std::string>> at =
        ReadGlobs(*Find(value, "at"), "recompute at");
    if (!at.ok()) return at.status();
    rule.at = *std::move(at);
    policy = Find(value, "policy");
  }
  StatusOr<RecomputePolicy> word =
      ReadName(*policy, "recompute", RecomputeNames());
  if (!word.ok()) return word.status();
  rule.policy = *word;
  rule.where = value.where;
  plan_.recompute.push_back(std::move(rule));
  return OkStatus();
}

}  // namespace partita::plan
