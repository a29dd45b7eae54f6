// Checks roles of inputs, and parameters that a step may update.
#include "runtime/program/validate_training.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"

namespace partita::program {
namespace {

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

std::string NameOf(PortRole role) {
  return role < PortRole::MIN || role > PortRole::MAX ? ""
                                                      : EnumNamePortRole(role);
}

absl::Status CheckRole(const Port& port, std::set<PortRole>& seen) {
  const PortRole role = port.role();
  if (role == PortRole::data) return absl::OkStatus();
  const std::string where = absl::StrCat("input '", port.name()->str(), "': ");
  if (NameOf(role).empty())
    return Bad(absl::StrCat(where, "unknown role ", static_cast<int>(role)));
  if (!seen.insert(role).second)
    return Bad(absl::StrCat(where, "it is the second one with the role ",
                            NameOf(role)));
  const DType expected =
      role == PortRole::learning_rate ? DType::f32 : DType::i64;
  const std::vector<int64_t> shape = ShapeOf(*port.type());
  if (port.type()->dtype() == expected && base::ElementCount(shape) == 1 &&
      port.shard() == nullptr)
    return absl::OkStatus();
  return Bad(absl::StrCat(where, "the role ", NameOf(role),
                          " is for one whole ", base::NameOf(ToBase(expected)),
                          ", found ",
                          base::TypeName(ToBase(port.type()->dtype()), shape)));
}

}  // namespace

absl::Status ValidateRoles(const Program& program) {
  std::set<PortRole> seen;
  for (int64_t i = 0; i < SizeOrZero(program.inputs()); ++i) {
    PARTITA_RETURN_IF_ERROR(
        CheckRole(*program.inputs()->Get(static_cast<unsigned>(i)), seen));
  }
  for (int64_t i = 0; i < SizeOrZero(program.outputs()); ++i) {
    const Port& port = *program.outputs()->Get(static_cast<unsigned>(i));
    if (port.role() != PortRole::data)
      return Bad(absl::StrCat("output '", port.name()->str(),
                              "': outputs have no role"));
  }
  return absl::OkStatus();
}

absl::Status ValidateUpdates(const Program& program, const Entry& entry) {
  std::set<int> initial;
  for (int64_t i = 0; i < SizeOrZero(entry.init_parameters()); ++i)
    initial.insert(entry.init_parameters()->Get(static_cast<unsigned>(i)));
  std::set<int> updated;
  for (int64_t i = 0; i < SizeOrZero(entry.main_updates()); ++i) {
    const int index = entry.main_updates()->Get(static_cast<unsigned>(i));
    if (index < 0 || index >= SizeOrZero(program.parameters()))
      return Bad(absl::StrCat("update ", i, ": parameter ", index, " of ",
                              SizeOrZero(program.parameters())));
    const Parameter& parameter =
        *program.parameters()->Get(static_cast<unsigned>(index));
    const std::string where =
        absl::StrCat("update of '", parameter.name()->str(), "': ");
    if (!updated.insert(index).second)
      return Bad(absl::StrCat(where, "it comes twice"));
    if (parameter.kind() == ParameterKind::constant)
      return Bad(absl::StrCat(where, "it is a constant"));
    if (parameter.source_as_CoordinateSource() != nullptr)
      return Bad(absl::StrCat(where, "it is a coordinate"));
    if (initial.count(index) > 0)
      return Bad(absl::StrCat(where, "derived values are made from it once"));
  }
  return absl::OkStatus();
}

}  // namespace partita::program
