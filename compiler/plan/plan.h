// The plan: everything that decides how a model is distributed, written by a
// person or by the planner. PLAN.md is the reference of the file. The
// structures here mirror its fields in the same order.
//
// Errors say what was expected, what was found, where, and what to do. Nothing
// throws.
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
#include "compiler/core/propagate.h"
#include "compiler/core/sharding.h"

namespace partita::plan {

// Position of an item in a plan file. Line 0 is a command-line option, which
// `Plan::origin` names.
struct Location {
  int line = 0, column = 0;  // from 1
};

// One dimension of an entry and the axes that shard it, e.g. `M: tensor`.
struct ShardedDimension {
  std::string dimension;            // B D M N E L V H W X or a name of `names`
  std::vector<core::AxisRef> axes;  // the first is the most significant
  Location where;
};

// One priority level: {M: tensor, N: tensor, at: "h.*"}. It applies where both
// of its scopes, `at` and `stages`, hold.
struct Entry {
  std::vector<ShardedDimension> dimensions;
  std::vector<std::string> at;  // globs, see glob.h; empty: everywhere
  Location where;
  std::vector<int> stages = {};  // pipeline stages, from 0; empty: all
};

// True if the entry applies to only a part of the model.
inline bool IsScoped(const Entry& entry) {
  return !entry.at.empty() || !entry.stages.empty();
}
// True if the entry applies to `stage` or to a part of it.
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
  int64_t chunks = 1;  // for kInterleaved: stages per device
  std::string file;    // for kFile: the path
};

struct Stage {
  std::string to;                  // glob of the last layer
  std::optional<core::Mesh> mesh;  // none: the plan's, without the axes of D
  Location where;
};

enum class RecomputePolicy { kNone, kSelective, kFull, kBudget };

struct Recompute {
  RecomputePolicy policy = RecomputePolicy::kSelective;
  std::vector<std::string> at;  // globs, see glob.h; empty: everywhere
  Location where;
};

using core::Precision;
enum class Offload { kNone, kOptimizer };
// Where offloaded states are, if not in host memory.
struct StateFiles {
  std::string folder;
  int64_t buffers = 0;  // upper bound in bytes per device; 0: as needed
};
using core::ExpertExchange;
using core::LongAttention;

// How experts over the axes of the rows get their rows.
struct Experts {
  std::optional<ExpertExchange> exchange;  // none: what moves fewer bytes
  // Upper bound on the rows that a device receives, as a factor over the even
  // share; 0: all rows of the group.
  double rows = 0;
};

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

// Upper bound on the bytes that a device sends per step, by kind of collective:
// all_gather, all_reduce, reduce_scatter, all_to_all, exchange, permute,
// send_rows, return_rows, total.
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
  std::vector<Recompute> recompute;    // later rules win; empty: selective
  std::optional<Precision> precision;  // none: the model's
  Offload offload = Offload::kNone;
  std::optional<StateFiles> state_files;   // only with kOptimizer
  std::optional<LongAttention> attention;  // none: what moves fewer bytes
  std::optional<Experts> experts;
  std::optional<int64_t> memory;  // bytes per device
  std::vector<Override> overrides;
  std::vector<Budget> budgets;
  std::vector<Name> names;
  std::map<std::string, Location> fields;  // positions of the fields read
};

// --- Reading and writing ---

absl::StatusOr<Plan> ReadPlan(const std::string& path);
// Messages name `origin` before the line.
absl::StatusOr<Plan> ParsePlan(const std::string& text,
                               const std::string& origin);
// Canonical text: fields in the order of PLAN.md, without those at their
// defaults. Parses to the same plan.
std::string WritePlan(const Plan& plan);
// The differences, one line each, e.g. "zero: 0 -> 1". Empty if the plans are
// equal.
std::vector<std::string> DiffPlans(const Plan& a, const Plan& b);

// --- The command line ---

// Parses --mesh: "data=2,tensor=2".
absl::StatusOr<core::Mesh> ParseMeshOption(const std::string& text);
// Parses --shard: "B=data,M=tensor;L=tensor". ',' separates dimensions of one
// priority level, ';' the levels (a trailing ';' is allowed). '+' joins several
// axes of one dimension. A scope follows '@':
// "B=data+fsdp;H=tensor@stages.{0,1}.*;M=tensor@stage(1)", where stage(0+1)
// lists pipeline stages.
absl::StatusOr<std::vector<Entry>> ParseShardOption(const std::string& text,
                                                    const core::Mesh& mesh);
// Parses --recompute: "selective;full@h.*". ';' separates rules (a trailing ';'
// is allowed), of which later ones win. A scope follows '@'.
absl::StatusOr<std::vector<Recompute>> ParseRecomputeOption(
    const std::string& text);
// Parses --attention: "ulysses".
absl::StatusOr<LongAttention> ParseAttentionOption(const std::string& text);
// Parses --experts: "gather", "rows" or "rows=1.25".
absl::StatusOr<Experts> ParseExpertsOption(const std::string& text);
// Parses --schedule and the field: "zb-v", "interleaved(2)", "own.csv". The
// caller adds the option or field to errors.
absl::StatusOr<Schedule> ParseSchedule(const std::string& text);
// Parses --name and the items of `names`: "*.mlp.c_fc.weight:1=M". The caller
// adds the option or field to errors. Functions named Parse...Option name their
// options themselves.
absl::StatusOr<Name> ParseName(const std::string& text);

// Parses "[{a, b:(1)2}, {?}, {c, ?}|28] replicated={d} unreduced={e}", the text
// of core's ToString: one {} per dimension, and ? where propagation may add
// axes.
absl::StatusOr<core::Sharding> ParseShardingText(const std::string& text,
                                                 const core::Mesh& mesh);
// Parses "78 GB", "1.5 GiB", "0 MB".
absl::StatusOr<int64_t> ParseBytes(const std::string& text);

// --- Checks ---

// Checks a plan: known names, axes that are in the mesh and used once, valid
// globs and sizes. ParsePlan has already called it.
absl::Status CheckPlan(const Plan& plan);
// Refuses a mesh whose number of devices differs from --devices.
absl::Status CheckDeviceCount(const Plan& plan, int64_t devices);

// --- Words ---

// "plan.yaml:3:5", "--shard".
std::string Where(const Plan& plan, Location where);
// "{data: 2, tensor: 4}".
std::string ToString(const core::Mesh& mesh);
// "{M: tensor, N: tensor}".
std::string ToString(const core::Mesh& mesh, const Entry& entry);
// Dimensions that every plan may name: B D M N E L V H W X.
const std::vector<std::string>& KnownDimensions();

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_PLAN_H_
