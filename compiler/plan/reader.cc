// Reads the fields of a plan, with the refusals of each.
#include "compiler/plan/reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/plan/glob.h"
#include "compiler/plan/names.h"
#include "compiler/plan/text.h"

namespace partita::plan {

using absl::OkStatus;
using absl::Status;
using absl::StatusOr;

Status Reader::Refuse(const Node& at, const std::string& message) const {
  return absl::InvalidArgumentError(Where(plan_, at.where) + ": " + message);
}

Status Reader::Refuse(const Node& at, const std::string& what,
                      const Status& status) const {
  return Refuse(at, what + ": " + std::string(status.message()));
}

const Node* Reader::Find(const Node& map, const std::string& key) const {
  for (size_t i = 0; i + 1 < map.children.size(); i += 2)
    if (map.children[i].scalar == key) return &map.children[i + 1];
  return nullptr;
}

Status Reader::CheckMap(const Node& map, const std::string& what,
                        const Names& allowed, const Names& required) {
  if (map.kind != Node::Kind::kMap)
    return Refuse(map, what + ": expected a map, found " + Describe(map));
  for (size_t i = 0; i < map.children.size(); i += 2) {
    const Node& key = map.children[i];
    if (key.kind != Node::Kind::kScalar)
      return Refuse(
          key, what + ": expected a word before ':', found " + Describe(key));
    if (!allowed.empty() &&
        std::find(allowed.begin(), allowed.end(), key.scalar) == allowed.end())
      return Refuse(key, what + ": expected " + Join(allowed) + ", found " +
                             Quote(key.scalar) + Suggest(key.scalar, allowed));
    for (size_t j = 0; j < i; j += 2)
      if (map.children[j].scalar == key.scalar)
        return Refuse(key, what + ": expected " + Quote(key.scalar) +
                               " once, found it at line " +
                               std::to_string(map.children[j].where.line) +
                               " too");
  }
  for (const std::string& name : required)
    if (Find(map, name) == nullptr)
      return Refuse(map, what + ": expected " + Quote(name) + ", found none");
  return OkStatus();
}

StatusOr<int64_t> Reader::ReadCount(const Node& value, const std::string& what,
                                    int64_t least, int64_t most) {
  const StatusOr<int64_t> count = ParseCount(value.scalar);
  if (value.kind != Node::Kind::kScalar || !count.ok() || *count < least ||
      *count > most)
    return Refuse(value, what + ": expected a whole number from " +
                             std::to_string(least) + " to " +
                             std::to_string(most) + ", found " +
                             Describe(value));
  return *count;
}

StatusOr<int64_t> Reader::ReadBytes(const Node& value,
                                    const std::string& what) {
  const StatusOr<int64_t> bytes =
      ParseBytes(value.kind == Node::Kind::kScalar ? value.scalar : "");
  if (!bytes.ok()) return Refuse(value, what, bytes.status());
  return *bytes;
}

StatusOr<std::string> Reader::ReadGlob(const Node& value,
                                       const std::string& what) {
  if (value.kind != Node::Kind::kScalar)
    return Refuse(value, what + ": expected a pattern such as h.*.mlp, found " +
                             Describe(value));
  if (Status status = CheckGlob(value.scalar); !status.ok())
    return Refuse(value, what, status);
  return value.scalar;
}

StatusOr<std::vector<std::string>> Reader::ReadGlobs(const Node& value,
                                                     const std::string& what) {
  std::vector<std::string> globs;
  const bool is_list = value.kind == Node::Kind::kList;
  if (is_list && value.children.empty())
    return Refuse(value, what + ": expected at least one pattern, found none");
  for (const Node& item : is_list ? value.children : std::vector<Node>{value}) {
    StatusOr<std::string> glob = ReadGlob(item, what);
    if (!glob.ok()) return glob.status();
    globs.push_back(*glob);
  }
  return globs;
}

StatusOr<Plan> Reader::Read(const Node& root) {
  if (root.kind != Node::Kind::kMap)
    return Refuse(root.where.line > 0 ? root : Node{{}, {}, {}, {1, 1}},
                  "plan: expected a map of " + Join(FieldNames()) + ", found " +
                      Describe(root));
  if (Status status = CheckMap(root, "plan", FieldNames(), {"mesh"});
      !status.ok())
    return status;
  // Other fields refer to these, so read them first.
  for (const char* key : {"mesh", "names"})
    if (const Node* value = Find(root, key))
      if (Status status = ReadField(key, *value); !status.ok()) return status;
  for (size_t i = 0; i < root.children.size(); i += 2) {
    const std::string& key = root.children[i].scalar;
    if (key == "mesh" || key == "names") continue;
    if (Status status = ReadField(key, root.children[i + 1]); !status.ok())
      return status;
  }
  if (Status status = CheckPlan(plan_); !status.ok()) return status;
  return plan_;
}

Status Reader::ReadField(const std::string& key, const Node& value) {
  plan_.fields[key] = value.where;
  const auto assign = [](auto result, auto& field) {
    if (!result.ok()) return Status(result.status());
    field = *std::move(result);
    return OkStatus();
  };
  if (key == "mesh") return assign(ReadMesh(value), plan_.mesh);
  if (key == "shard") return ReadShard(value);
  if (key == "zero") return assign(ReadCount(value, key, 0, 3), plan_.zero);
  if (key == "gather") return ReadGather(value);
  if (key == "microbatches")
    return assign(ReadCount(value, key, 1, 1 << 20), plan_.microbatches);
  if (key == "schedule") return ReadSchedule(value);
  if (key == "stages") return ReadStages(value);
  if (key == "recompute") return ReadRecompute(value);
  if (key == "precision")
    return assign(ReadName(value, key, PrecisionNames()), plan_.precision);
  if (key == "offload") return ReadOffload(value);
  if (key == "attention")
    return assign(ReadName(value, key, AttentionNames()), plan_.attention);
  if (key == "experts") return ReadExperts(value);
  if (key == "memory") return assign(ReadBytes(value, key), plan_.memory);
  if (key == "overrides") return ReadOverrides(value);
  if (key == "budgets") return ReadBudgets(value);
  return ReadNames(value);
}

StatusOr<core::Mesh> Reader::ReadMesh(const Node& value) {
  core::Mesh mesh;
  if (Status status = CheckMap(value, "mesh", {}); !status.ok()) return status;
  // The long form is {axes: {...}, device_ids: [...]}. In the short form an
  // axis may be named "axes".
  const Node* axes = Find(value, "axes");
  const Node* ids = nullptr;
  if (axes != nullptr && axes->kind == Node::Kind::kMap) {
    if (Status status = CheckMap(value, "mesh", {"axes", "device_ids"});
        !status.ok())
      return status;
    if (Status status = CheckMap(*axes, "mesh", {}); !status.ok())
      return status;
    ids = Find(value, "device_ids");
  } else {
    axes = &value;
  }
  for (size_t i = 0; i < axes->children.size(); i += 2) {
    const std::string& name = axes->children[i].scalar;
    if (name == "device_ids")
      return Refuse(axes->children[i],
                    "mesh: expected the axes under 'axes' where device_ids is "
                    "given, as {axes: {data: 2}, device_ids: [1, 0]}, found "
                    "them beside it");
    StatusOr<int64_t> size = ReadCount(
        axes->children[i + 1], "mesh axis " + Quote(name), 1, int64_t{1} << 24);
    if (!size.ok()) return size.status();
    mesh.axes.push_back({name, *size});
  }
  if (ids != nullptr) {
    if (ids->kind != Node::Kind::kList)
      return Refuse(*ids,
                    "device_ids: expected a list, found " + Describe(*ids));
    for (const Node& item : ids->children) {
      StatusOr<int64_t> id = ReadCount(item, "device_ids", 0, 1 << 24);
      if (!id.ok()) return id.status();
      mesh.device_ids.push_back(*id);
    }
  }
  if (Status status = CheckMesh(mesh); !status.ok())
    return Refuse(ids == nullptr ? value : *ids, "mesh", status);
  return mesh;
}

Status Reader::ReadShard(const Node& value) {
  if (value.kind != Node::Kind::kList)
    return Refuse(value,
                  "shard: expected a list of entries in order of priority, as "
                  "[{B: data}, {M: tensor}], found " +
                      Describe(value));
  for (const Node& item : value.children) {
    StatusOr<Entry> entry = ReadEntry(item);
    if (!entry.ok()) return entry.status();
    plan_.shard.push_back(*std::move(entry));
  }
  return OkStatus();
}

StatusOr<Entry> Reader::ReadEntry(const Node& value) {
  if (Status status = CheckMap(value, "shard", {}); !status.ok()) return status;
  Entry entry;
  entry.where = value.where;
  for (size_t i = 0; i < value.children.size(); i += 2) {
    const Node& key = value.children[i];
    if (key.scalar == "at") {
      StatusOr<std::vector<std::string>> globs =
          ReadGlobs(value.children[i + 1], "at");
      if (!globs.ok()) return globs.status();
      entry.at = *std::move(globs);
      continue;
    }
    if (key.scalar == "stage") {
      StatusOr<std::vector<int>> stages =
          ReadStageNumbers(value.children[i + 1]);
      if (!stages.ok()) return stages.status();
      entry.stages = *std::move(stages);
      continue;
    }
    StatusOr<ShardedDimension> sharded =
        ReadShardedDimension(key, value.children[i + 1]);
    if (!sharded.ok()) return sharded.status();
    entry.dimensions.push_back(*std::move(sharded));
  }
  return entry;
}

StatusOr<ShardedDimension> Reader::ReadShardedDimension(const Node& key,
                                                        const Node& value) {
  ShardedDimension sharded{key.scalar, {}, key.where};
  const bool is_list = value.kind == Node::Kind::kList;
  for (const Node& item : is_list ? value.children : std::vector<Node>{value}) {
    if (item.kind != Node::Kind::kScalar)
      return Refuse(item.where.line > 0 ? item : key,
                    "shard " + Quote(key.scalar) +
                        ": expected an axis or a list of axes, found " +
                        Describe(item));
    StatusOr<core::AxisRef> axis = ParseAxis(item.scalar, plan_.mesh);
    if (!axis.ok())
      return Refuse(item, "shard " + Quote(key.scalar), axis.status());
    sharded.axes.push_back(*axis);
  }
  return sharded;
}

Status Reader::ReadOverrides(const Node& value) {
  if (value.kind != Node::Kind::kList)
    return Refuse(value,
                  "overrides: expected a list, as [{tensor: \"h.*.weight\", "
                  "sharding: \"[{}, {tensor}]\"}], found " +
                      Describe(value));
  for (const Node& item : value.children) {
    if (Status status = CheckMap(item, "overrides", {"tensor", "sharding"},
                                 {"tensor", "sharding"});
        !status.ok())
      return status;
    StatusOr<std::string> tensor =
        ReadGlob(*Find(item, "tensor"), "overrides tensor");
    if (!tensor.ok()) return tensor.status();
    const Node& text = *Find(item, "sharding");
    if (text.kind != Node::Kind::kScalar)
      return Refuse(text,
                    "overrides sharding: expected text in quotes, as \"[{}, "
                    "{tensor}]\", found " +
                        Describe(text));
    StatusOr<core::Sharding> sharding =
        ParseShardingText(text.scalar, plan_.mesh);
    if (!sharding.ok())
      return Refuse(text, "overrides sharding", sharding.status());
    plan_.overrides.push_back({*tensor, *std::move(sharding), item.where});
  }
  return OkStatus();
}

Status Reader::ReadBudgets(const Node& value) {
  if (Status status = CheckMap(value, "budgets", BudgetKinds()); !status.ok())
    return status;
  for (size_t i = 0; i < value.children.size(); i += 2) {
    const Node& key = value.children[i];
    StatusOr<int64_t> bytes =
        ReadBytes(value.children[i + 1], "budgets " + key.scalar);
    if (!bytes.ok()) return bytes.status();
    plan_.budgets.push_back({key.scalar, *bytes, key.where});
  }
  return OkStatus();
}

Status Reader::ReadNames(const Node& value) {
  if (value.kind != Node::Kind::kList)
    return Refuse(value,
                  "names: expected a list, as [\"h.*.up.weight:1=M\"], found " +
                      Describe(value));
  for (const Node& item : value.children) {
    if (item.kind != Node::Kind::kScalar)
      return Refuse(item,
                    "names: expected a tensor, a dimension's number and its "
                    "name in one text, as \"h.*.up.weight:1=M\", found " +
                        Describe(item));
    StatusOr<Name> name = ParseName(item.scalar);
    if (!name.ok()) return Refuse(item, "names", name.status());
    name->where = item.where;
    plan_.names.push_back(*std::move(name));
  }
  return OkStatus();
}

StatusOr<Plan> ParsePlan(const std::string& text, const std::string& origin) {
  StatusOr<Node> root = ParseYaml(text, origin);
  if (!root.ok()) return root.status();
  return Reader(origin).Read(*root);
}

StatusOr<Plan> ReadPlan(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return absl::NotFoundError("expected a plan to read, found no file '" +
                               path + "'");
  std::ostringstream text;
  text << file.rdbuf();
  std::error_code ignored;
  if (file.bad() || std::filesystem::is_directory(path, ignored))
    return absl::InvalidArgumentError("expected a plan to read, found '" +
                                      path + "', which cannot be read");
  return ParsePlan(text.str(), path);
}

}  // namespace partita::plan
