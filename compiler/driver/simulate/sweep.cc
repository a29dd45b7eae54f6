// partita simulate --sweep: reads and writes the files of the planner's sweep.
#include "compiler/driver/simulate/sweep.h"

#include <chrono>
#include <optional>

#include "compiler/planner/published/sweep.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/atomic_file.h"

namespace partita::driver {

using llvm::json::Object;
using llvm::json::Value;

absl::StatusOr<Value> predictRows(const SweepArguments& arguments,
                                  const planner::OwnPredictor& own) {
  std::optional<planner::Cluster> cluster;
  if (!arguments.cluster.empty()) {
    absl::StatusOr<planner::Cluster> found =
        planner::OpenCluster(arguments.cluster);
    if (!found.ok()) return found.status();
    cluster = *std::move(found);
  }
  auto text = llvm::MemoryBuffer::getFile(arguments.rows);
  if (!text)
    return absl::InvalidArgumentError("--sweep: cannot read '" +
                                      arguments.rows +
                                      "': " + text.getError().message());
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<planner::SweepResult> result = planner::RunSweep(
      (*text)->getBuffer().str(), arguments.rows, cluster, own);
  if (!result.ok()) return result.status();
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  auto file = base::AtomicFile::Create(arguments.output);
  if (!file.ok()) return file.status();
  if (absl::Status status = (*file)->Append(result->csv); !status.ok())
    return status;
  if (absl::Status status = (*file)->Commit(); !status.ok()) return status;
  llvm::json::Array problems;
  for (const auto& [kind, problem] : result->problems)
    problems.push_back(Object{{"rows", problem.rows},
                              {"first_line", problem.line},
                              {"problem", problem.first}});
  return Object{{"kind", "sweep"},
                {"rows", result->rows},
                {"predicted", result->predicted},
                {"seconds", taken.count()},
                {"output", arguments.output},
                {"other_gpus", result->other_gpus.rows},
                {"other_gpu", result->other_gpus.first},
                {"other_frameworks", result->other_frameworks.rows},
                {"other_framework", result->other_frameworks.first},
                {"device", cluster ? planner::NameOf(cluster->device) : ""},
                {"problems", std::move(problems)},
                {"hints", llvm::json::Array(result->hints)}};
}

void printSweep(const Value& value, llvm::raw_ostream& stream) {
  const Object& facts = *value.getAsObject();
  stream << llvm::formatv("{0} of {1} rows predicted in {2:f2} s, in {3}\n",
                          facts.getInteger("predicted").value_or(0),
                          facts.getInteger("rows").value_or(0),
                          facts.getNumber("seconds").value_or(0),
                          facts.getString("output").value_or(""));
  for (const Value& each : *facts.getArray("problems")) {
    const Object& problem = *each.getAsObject();
    const int64_t count = problem.getInteger("rows").value_or(0);
    stream << llvm::formatv("  {0} without, {1} line {2}: {3}\n", count,
                            count == 1 ? "in" : "the first in",
                            problem.getInteger("first_line").value_or(0),
                            problem.getString("problem").value_or(""));
  }
  for (const Value& hint : *facts.getArray("hints"))
    stream << "  " << *hint.getAsString() << "\n";
}

}  // namespace partita::driver
