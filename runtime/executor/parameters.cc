// Lists parameters, with their blocks and whole tensors.
#include "runtime/executor/parameters.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/program/types.h"

namespace partita::executor {

namespace {

ParameterSpec Specify(const program::Parameter& parameter, size_t index) {
  ParameterSpec spec;
  spec.index = index;
  spec.local.name = spec.whole.name = parameter.name()->str();
  spec.local.dtype = spec.whole.dtype =
      program::ToBase(parameter.type()->dtype());
  spec.local.shape = program::ShapeOf(*parameter.type());
  spec.whole.shape = program::WholeShape(parameter);
  spec.local.bytes = *base::ByteCount(spec.local.dtype, spec.local.shape);
  spec.whole.bytes = *base::ByteCount(spec.whole.dtype, spec.whole.shape);
  spec.kind = parameter.kind();
  spec.in_parts = parameter.parts();
  return spec;
}

// How entries use a parameter.
struct Roles {
  bool held = false;
  bool updated = false;
};

void AddRoles(const program::Entry& entry, std::vector<Roles>& roles) {
  for (const auto* list : {entry.main_globals(), entry.init_parameters()}) {
    for (int64_t i = 0; i < program::SizeOrZero(list); ++i) {
      const size_t index =
          static_cast<size_t>(list->Get(static_cast<unsigned>(i)));
      if (index < roles.size()) roles[index].held = true;
    }
  }
  for (int64_t i = 0; i < program::SizeOrZero(entry.main_updates()); ++i) {
    Roles& role = roles[static_cast<size_t>(
        entry.main_updates()->Get(static_cast<unsigned>(i)))];
    role.held = role.updated = true;
  }
}

std::vector<ParameterSpec> ListHeld(const program::Program& program,
                                    const std::vector<Roles>& roles) {
  std::vector<ParameterSpec> specs;
  for (size_t i = 0; i < roles.size(); ++i) {
    const program::Parameter& parameter =
        *program.parameters()->Get(static_cast<unsigned>(i));
    if (!roles[i].held || parameter.source_as_CoordinateSource() != nullptr)
      continue;
    specs.push_back(Specify(parameter, i));
    specs.back().updated = roles[i].updated;
  }
  return specs;
}

}  // namespace

std::vector<ParameterSpec> ListParameters(const program::Program& program) {
  std::vector<Roles> roles(
      static_cast<size_t>(program::SizeOrZero(program.parameters())));
  for (const program::Entry* entry : *program.entries())
    AddRoles(*entry, roles);
  return ListHeld(program, roles);
}

std::vector<ParameterSpec> ListParameters(const program::Program& program,
                                          const program::Entry& entry) {
  std::vector<Roles> roles(
      static_cast<size_t>(program::SizeOrZero(program.parameters())));
  AddRoles(entry, roles);
  return ListHeld(program, roles);
}

absl::StatusOr<const ParameterSpec*> FindParameter(
    const std::vector<ParameterSpec>& parameters, const std::string& name) {
  for (const ParameterSpec& parameter : parameters)
    if (parameter.whole.name == name) return &parameter;
  return absl::NotFoundError(
      absl::StrCat("the program has no parameter '", name, "'"));
}

absl::Status CheckParameterTensor(const TensorSpec& spec,
                                  const ConstTensor& tensor) {
  if (tensor.dtype != spec.dtype || tensor.shape != spec.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter '", spec.name, "': expected ",
                     base::TypeName(spec.dtype, spec.shape), ", found ",
                     base::TypeName(tensor.dtype, tensor.shape)));
  }
  if (tensor.data == nullptr && spec.bytes > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter '", spec.name, "': it has no data"));
  }
  return absl::OkStatus();
}

absl::Status CheckUpdated(const ParameterSpec& spec) {
  if (spec.updated || spec.kind == program::ParameterKind::state)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("parameter '", spec.whole.name,
                   "': the program does not update it, so it is fixed since "
                   "loading and cannot be replaced"));
}

}  // namespace partita::executor
