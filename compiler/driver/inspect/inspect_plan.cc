// Shows a plan as Partita would write it. Reading has already checked the plan.
#include "compiler/driver/inspect/inspect_plan.h"

#include "compiler/plan/plan_schedule.h"
#include "llvm/Support/FormatVariadic.h"

namespace partita::driver {

using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

Value inspectPlan(const plan::Plan& plan) {
  Array entries;
  for (const plan::Entry& entry : plan.shard)
    entries.push_back(plan::ToString(plan.mesh, entry));
  const absl::Status compiles = plan::DivideStages(plan).status();
  return Object{{"kind", "plan"},
                {"mesh", plan::ToString(plan.mesh)},
                {"devices", plan.mesh.Size()},
                {"entries", std::move(entries)},
                {"text", plan::WritePlan(plan)},
                {"refused", std::string(compiles.message())}};
}

void printPlan(const Value& facts, llvm::raw_ostream& stream) {
  const Object& object = *facts.getAsObject();
  const int64_t devices = *object.getInteger("devices");
  stream << llvm::formatv("# a plan for {0} device{1}\n{2}", devices,
                          devices == 1 ? "" : "s", *object.getString("text"));
  const llvm::StringRef refused = *object.getString("refused");
  if (!refused.empty()) stream << "# does not compile: " << refused << "\n";
}

}  // namespace partita::driver
