// Command-line options that say how to divide a model.
#ifndef PARTITA_COMPILER_DRIVER_PLAN_ARGUMENTS_H_
#define PARTITA_COMPILER_DRIVER_PLAN_ARGUMENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/plan.h"

namespace partita::driver {

struct PlanArguments {
  std::string plan_path;           // --plan
  std::string mesh, shard;         // --mesh, --shard
  std::vector<std::string> names;  // --name
  int zero = 0;                    // --zero
  int64_t microbatches = 1;        // --microbatches
  std::string schedule;            // --schedule; empty: 1f1b
  std::string precision;           // --precision; empty: as the model has it
  std::string recompute;           // --recompute; empty: selective
  std::string attention;           // --attention; empty: fewer bytes
  std::string experts;             // --experts; empty: fewer bytes
  std::string memory;              // --memory; empty: no limit
  int64_t devices = 0;             // --devices; 0: as many as the mesh has

  // The plan that the options describe; none if they describe none.
  // FailedPrecondition if the plan file is wrong, InvalidArgument if the
  // options are. Refuses a plan file together with --mesh, --shard, --zero,
  // --microbatches, --schedule, --precision, --recompute, --attention,
  // --experts or --memory; --shard without --mesh; a mesh with another number
  // of devices; and plans that the compiler does not support yet.
  absl::StatusOr<std::optional<plan::Plan>> Finish() const;
  // The value of --precision, also if there is no plan.
  absl::StatusOr<std::optional<plan::Precision>> FindPrecision() const;
  // The value of --recompute.
  absl::StatusOr<std::vector<plan::Recompute>> FindRecompute() const;
  // The value of --memory, in bytes.
  absl::StatusOr<std::optional<int64_t>> FindMemory() const;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLAN_ARGUMENTS_H_
