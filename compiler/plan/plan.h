// The plan: everything that decides how a model is distributed, as a person or
// the planner writes it. PLAN.md is the reference of the file; the structures
// here are what it says, in the same order.
//
// All functions refuse with what was expected, what was found, where, and what
// to do; none throws.
#ifndef PARTITA_COMPILER_PLAN_PLAN_H_
#define PARTITA_COMPILER_PLAN_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/core/mesh.h"
#include "compiler/core/precision.h"
#include "compiler/core/sharding.h"

namespace partita::plan {

// Where something was written; line 0: in an option, which `origin` names.
struct Location {
  int line = 0, column = 0;  // from 1
};

// One dimension of an entry and the axes over which it is sharded: M: tensor.
struct ShardedDimension {
  std::string dimension;            // B D M N E L V H W X or a name of `names`
  std::vector<core::AxisRef> axes;  // the first is the most significant
  Location where;
};

// One priority: {M: tensor, N: tensor, at: "h.*"}. It holds where both of its
// scopes do.
struct Entry {
  std::vector<ShardedDimension> dimensions;
  std::vector<std::string> at;  // globs, see glob.h; empty: everywhere
  Location where;
  std::vector<int> stages = {};  // of a pipeline, from 0; empty: all
};

// Whether the entry acts in only a part of the model.
inline bool IsScoped(const Entry& entry) {
  return !entry.at.empty() || !entry.stages.empty();
}
// Whether it acts in a stage, if only in a part of it.
bool HoldsIn(const Entry& entry, int stage);

enum class Hold { kUse, kStep };

struct Gather {
  int64_t prefetch = 1;  // layers gathered ahead
  Hold hold = Hold::kUse;
};

enum class ScheduleKind {
  kGpipe,
  k1F1B,
  kInterleaved,
  kZbH1,
  kZbV,
  kAsync2bw,
  kAsync,
  kFile
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::k1F1B;
  int64_t chunks = 1;  // of kInterleaved: stages per device
  std::string file;    // of kFile
};

struct Stage {
  std::string to;                  // glob of the last layer
  std::optional<core::Mesh> mesh;  // the plan's without the axes of D, if none
  Location where;
};

enum class RecomputePolicy { kNone, kSelective, kFull, kBudget };

struct Recompute {
  RecomputePolicy policy = RecomputePolicy::kSelective;
  std::vector<std::string> at;  // globs, see glob.h; empty: everywhere
  Location where;
};

// All but kFp8, which CheckPlan refuses.
using core::Precision;
enum class Offload { kNone, kOptimizer };

struct Override {
  std::string tensor;  // glob
  core::Sharding sharding;
  Location where;
};

// A dimension named by the user: "*.mlp.c_fc.weight:1=M".
struct Name {
  std::string tensor;  // glob
  int dim = 0;
  std::string dimension;  // one of B M N E L V H W X
  Location where;
};

// At most so many bytes per step and device, by kind of collective: all_gather,
// all_reduce, reduce_scatter, all_to_all, exchange, permute, total.
struct Budget {
  std::string kind;
  int64_t bytes = 0;
  Location where;
};

struct Plan {
  std::string origin;  // file or option, for messages
  core::Mesh mesh;
  std::vector<Entry> shard;  // in order of priority
  int64_t zero = 0;
  std::optional<Gather> gather;
  int64_t microbatches = 1;
  std::optional<Schedule> schedule;
  std::vector<Stage> stages;           // empty: auto
  std::vector<Recompute> recompute;    // a later one outranks; empty: selective
  std::optional<Precision> precision;  // none: as the model has it
  Offload offload = Offload::kNone;
  std::optional<int64_t> memory;  // bytes per device
  std::vector<Override> overrides;
  std::vector<Budget> budgets;
  std::vector<Name> names;
  std::map<std::string, Location> fields;  // where each that is written stands
};

// --- Reading and writing ---

absl::StatusOr<Plan> ReadPlan(const std::string& path);
// `origin` stands before the line in messages.
absl::StatusOr<Plan> ParsePlan(const std::string& text,
                               const std::string& origin);
// Canonical: fields in the order of PLAN.md, those at their defaults left out.
// Parses to the same plan.
std::string WritePlan(const Plan& plan);
// What differs, a line each: "zero: 0 -> 1". Empty: the same plan.
std::vector<std::string> DiffPlans(const Plan& a, const Plan& b);

// --- The command line ---

// "data=2,tensor=2": --mesh.
absl::StatusOr<core::Mesh> ParseMeshOption(const std::string& text);
// "B=data,M=tensor;L=tensor": --shard. ',' within a priority, ';' before the
// next, or at the end; several axes of one dimension are joined by '+', a scope
// follows '@': "B=data+fsdp;H=tensor@stages.{0,1}.*;M=tensor@stage(1)", where
// stage(0+1) are stages of a pipeline.
absl::StatusOr<std::vector<Entry>> ParseShardOption(const std::string& text,
                                                    const core::Mesh& mesh);
// "selective;full@h.*": --recompute. ';' before the next, which outranks, or at
// the end; a scope follows '@'.
absl::StatusOr<std::vector<Recompute>> ParseRecomputeOption(
    const std::string& text);
// "zb-v", "interleaved(2)", "own.csv": --schedule, and the field; the caller
// says which.
absl::StatusOr<Schedule> ParseSchedule(const std::string& text);
// "*.mlp.c_fc.weight:1=M": --name, and the items of `names`; the caller says
// which. The three first say their options themselves.
absl::StatusOr<Name> ParseName(const std::string& text);

// "[{a, b:(1)2}, {?}, {c, ?}|28] replicated={d} unreduced={e}", as core's
// ToString writes it: one {} per dimension, ? where propagation may add axes.
absl::StatusOr<core::Sharding> ParseShardingText(const std::string& text,
                                                 const core::Mesh& mesh);
// "78 GB", "1.5 GiB", "0 MB".
absl::StatusOr<int64_t> ParseBytes(const std::string& text);

// --- Checks ---

// What a plan made elsewhere than by ParsePlan must satisfy: names known, axes
// in the mesh and used once, globs and sizes in order. ParsePlan has done it.
absl::Status CheckPlan(const Plan& plan);
// Whether the mesh has so many devices as --devices says.
absl::Status CheckDeviceCount(const Plan& plan, int64_t devices);

// --- Words ---

// "plan.yaml:3:5", "--shard".
std::string Where(const Plan& plan, Location where);
// "{data: 2, tensor: 4}".
std::string ToString(const core::Mesh& mesh);
// "{M: tensor, N: tensor}".
std::string ToString(const core::Mesh& mesh, const Entry& entry);
// The dimensions every model has: B D M N E L V H W X.
const std::vector<std::string>& KnownDimensions();

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_PLAN_H_
