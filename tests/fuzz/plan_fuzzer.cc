// Fuzzes plans and their command-line options. Any text is refused with a
// message, or read into a plan that is unchanged when written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/plan/glob.h"
#include "compiler/plan/plan.h"

using partita::plan::Plan;

namespace {

template <typename T>
void Refuses(const absl::StatusOr<T>& result) {
  if (!result.ok() && result.status().message().empty()) abort();
}

void ReadAndWrite(const std::string& text) {
  const absl::StatusOr<Plan> plan = partita::plan::ParsePlan(text, "fuzz");
  Refuses(plan);
  if (!plan.ok()) return;
  const std::string written = partita::plan::WritePlan(*plan);
  const absl::StatusOr<Plan> again =
      partita::plan::ParsePlan(written, "written");
  if (!again.ok() || partita::plan::WritePlan(*again) != written) abort();
  if (!partita::plan::DiffPlans(*plan, *again).empty()) abort();
  if (!partita::plan::CheckPlan(*plan).ok()) abort();
  for (const auto& name : plan->names)
    partita::plan::MatchesGlob(name.tensor, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ReadAndWrite(text);
  Refuses(partita::plan::ParseMeshOption(text));
  Refuses(partita::plan::ParseName(text));
  Refuses(partita::plan::ParseBytes(text));
  partita::core::Mesh mesh;
  mesh.axes = {{"data", 2}, {"tensor", 4}, {"a", 1}};
  Refuses(partita::plan::ParseShardOption(text, mesh));
  Refuses(partita::plan::ParseShardingText(text, mesh));
  return 0;
}
