// Reads the JSON that choose_plan.cc writes.
#include "compiler/driver/simulate/read_choice.h"

#include <fstream>
#include <sstream>

#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/mesh.h"

namespace partita::driver {
namespace {

using llvm::StringRef;
using llvm::json::Object;

std::string textOf(const Object& object, StringRef key) {
  return object.getString(key).value_or("").str();
}

double numberOf(const Object& object, StringRef key) {
  return object.getNumber(key).value_or(0);
}

simulator::ReportPlan::Row rowOf(const Object& choice) {
  return {textOf(choice, "division"), textOf(choice, "why"),
          numberOf(choice, "step_seconds"), numberOf(choice, "memory_bytes")};
}

template <typename Visit>
void forEach(const Object& object, StringRef key, const Visit& visit) {
  if (const llvm::json::Array* list = object.getArray(key))
    for (const llvm::json::Value& each : *list)
      if (const Object* entry = each.getAsObject()) visit(*entry);
}

// Must match program::DescribeMesh.
std::string meshOf(const plan::Plan& plan) {
  std::string text;
  for (const core::Axis& axis : plan.mesh.axes)
    text +=
        (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  return text;
}

}  // namespace

absl::StatusOr<simulator::ReportPlan> readChoice(
    const std::string& path, const program::Program& program) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  const auto refuse = [&](const std::string& found) {
    return absl::InvalidArgumentError(
        "--choice: expected the output of partita plan --json, found " + found +
        " in " + path);
  };
  if (!file.is_open()) return refuse("none");
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(content.str());
  if (!parsed) return refuse("no JSON: " + toString(parsed.takeError()));
  const Object* facts = parsed->getAsObject();
  if (facts == nullptr || textOf(*facts, "kind") != "plan")
    return refuse("other JSON");
  simulator::ReportPlan result;
  result.text = textOf(*facts, "text");
  result.binds = textOf(*facts, "binds");
  PARTITA_ASSIGN_OR_RETURN(const plan::Plan plan,
                           plan::ParsePlan(result.text, path));
  const std::string mesh = program::DescribeMesh(program.mesh());
  if (meshOf(plan) != mesh)
    return absl::InvalidArgumentError(
        "--choice: expected the choice of the plan that the program was "
        "compiled with, of mesh '" +
        mesh + "', found one of '" + meshOf(plan) + "' in " + path);
  result.rows.push_back(rowOf(*facts));
  forEach(*facts, "alternatives",
          [&](const Object& other) { result.rows.push_back(rowOf(other)); });
  forEach(*facts, "gains", [&](const Object& gain) {
    result.gains.push_back(
        {textOf(gain, "what"), numberOf(gain, "saved_seconds")});
  });
  return result;
}

}  // namespace partita::driver
