// Reads a plan's fields from the YAML tree. Internal to compiler/plan.
#ifndef PARTITA_COMPILER_PLAN_READER_H_
#define PARTITA_COMPILER_PLAN_READER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/text.h"
#include "compiler/plan/yaml.h"

namespace partita::plan {

class Reader {
 public:
  explicit Reader(const std::string& origin) { plan_.origin = origin; }

  absl::StatusOr<Plan> Read(const Node& root);

 private:
  using Names = std::vector<std::string>;

  absl::Status ReadField(const std::string& key, const Node& value);
  absl::StatusOr<core::Mesh> ReadMesh(const Node& value);
  absl::Status ReadShard(const Node& value);
  absl::StatusOr<Entry> ReadEntry(const Node& value);
  absl::StatusOr<ShardedDimension> ReadShardedDimension(const Node& key,
                                                        const Node& value);
  absl::Status ReadGather(const Node& value);
  absl::Status ReadSchedule(const Node& value);
  absl::Status ReadExperts(const Node& value);
  absl::Status ReadOffload(const Node& value);
  absl::Status ReadStages(const Node& value);
  // Reads one value or a list.
  absl::StatusOr<std::vector<int>> ReadStageNumbers(const Node& value);
  absl::Status ReadRecompute(const Node& value);
  absl::Status ReadRecomputeRule(const Node& value);
  absl::Status ReadOverrides(const Node& value);
  absl::Status ReadBudgets(const Node& value);
  absl::Status ReadNames(const Node& value);

  // Refuses keys outside `allowed` (unless it is empty), repeated keys, and
  // missing keys of `required`.
  absl::Status CheckMap(const Node& map, const std::string& what,
                        const Names& allowed, const Names& required = {});
  const Node* Find(const Node& map, const std::string& key) const;
  // Reads one of the words of a table. `what` is the field.
  template <typename T>
  absl::StatusOr<T> ReadName(
      const Node& value, const std::string& what,
      const std::vector<std::pair<std::string, T>>& words);
  absl::StatusOr<int64_t> ReadCount(const Node& value, const std::string& what,
                                    int64_t least, int64_t most);
  absl::StatusOr<int64_t> ReadBytes(const Node& value, const std::string& what);
  absl::StatusOr<std::string> ReadGlob(const Node& value,
                                       const std::string& what);
  // Reads one value or a list.
  absl::StatusOr<std::vector<std::string>> ReadGlobs(const Node& value,
                                                     const std::string& what);

  absl::Status Refuse(const Node& at, const std::string& message) const;
  // Adds the position and `what` to an error of a scalar parser.
  absl::Status Refuse(const Node& at, const std::string& what,
                      const absl::Status& status) const;

  Plan plan_;
};

template <typename T>
absl::StatusOr<T> Reader::ReadName(
    const Node& value, const std::string& what,
    const std::vector<std::pair<std::string, T>>& words) {
  std::vector<std::string> names;
  for (const auto& [word, meaning] : words) {
    if (value.kind == Node::Kind::kScalar && value.scalar == word)
      return meaning;
    names.push_back(word);
  }
  return Refuse(value, what + ": expected " + Join(names) + ", found " +
                           Describe(value) + Suggest(value.scalar, names));
}

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_READER_H_
