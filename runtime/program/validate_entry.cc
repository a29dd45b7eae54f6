// Checks entries: their lists, the arguments of their functions, and that
// together they use the whole model.
#include "runtime/program/validate_entry.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"
#include "runtime/program/validate.h"
#include "runtime/program/validate_mesh.h"
#include "runtime/program/validate_operation.h"
#include "runtime/program/validate_training.h"

namespace partita::program {
namespace {

using Indices = flatbuffers::Vector<int>;

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

absl::Status At(const std::string& where, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(where, ": ", status.message()));
}

// (V3): in range, no duplicates.
absl::Status CheckIndices(const char* what, const Indices* indices,
                          int64_t limit) {
  std::set<int> seen;
  for (int64_t i = 0; i < SizeOrZero(indices); ++i) {
    const int index = indices->Get(static_cast<unsigned>(i));
    if (index < 0 || index >= limit)
      return Bad(absl::StrCat(what, " ", index, " of ", limit));
    if (!seen.insert(index).second)
      return Bad(absl::StrCat(what, " ", index, " comes twice"));
  }
  return absl::OkStatus();
}

// Entries that use each element of one list of the program.
class Used {
 public:
  explicit Used(int64_t size) : seen_(static_cast<size_t>(size), false) {}

  void Add(const Indices* indices) {
    for (int64_t i = 0; i < SizeOrZero(indices); ++i) {
      const size_t index =
          static_cast<size_t>(indices->Get(static_cast<unsigned>(i)));
      if (index < seen_.size()) seen_[index] = true;
    }
  }
  bool Has(int64_t index) const { return seen_[static_cast<size_t>(index)]; }

 private:
  std::vector<bool> seen_;
};

class EntryValidator {
 public:
  EntryValidator(const Program& program, const Entry& entry,
                 const std::vector<std::vector<int64_t>>& needed)
      : program_(program),
        entry_(entry),
        needed_(needed),
        parameters_(SizeOrZero(program.parameters())),
        derived_(SizeOrZero(entry.derived())) {}

  // Messages put `where` before names of functions.
  absl::Status Run(const std::string& where) {
    for (int64_t i = 0; i < derived_; ++i) {
      const absl::StatusOr<int64_t> bytes =
          ValidateType(*entry_.derived()->Get(static_cast<unsigned>(i)));
      if (!bytes.ok())
        return At(absl::StrCat(where, "derived value ", i), bytes.status());
    }
    if (entry_.memory() != nullptr)
      PARTITA_RETURN_IF_ERROR(
          At(absl::StrCat(where, "memory"), CheckMemory(*entry_.memory())));
    const absl::Status updates = ValidateUpdates(program_, entry_);
    if (!updates.ok())
      return Bad(absl::StrCat(where, std::string(updates.message())));
    PARTITA_RETURN_IF_ERROR(At(where + "main", CheckMain()));
    return At(where + "init", CheckInit());
  }

 private:
  // (V16)
  static absl::Status CheckMemory(const MemoryTable& table) {
    const std::pair<const char*, int64_t> rows[] = {
        {"parameters", table.parameters()},
        {"states", table.states()},
        {"gradients", table.gradients()},
        {"activations", table.activations()},
        {"communication", table.communication()},
        {"derived", table.derived()},
        {"ports", table.ports()},
        {"scratch", table.scratch()},
        {"gaps", table.gaps()},
        {"most_gradients", table.most_gradients()},
        {"host", table.host()},
        {"files", table.files()}};
    for (const auto& [name, bytes] : rows)
      if (bytes < 0 || bytes > kMaxMemory)
        return Bad(absl::StrCat("expected 0 to ", kMaxMemory, " bytes of ",
                                name, ", found ", bytes));
    return absl::OkStatus();
  }

  int64_t GlobalBytes(int64_t global) const {
    if (global < parameters_)
      return BytesOf(
          *program_.parameters()->Get(static_cast<unsigned>(global))->type());
    return BytesOf(
        *entry_.derived()->Get(static_cast<unsigned>(global - parameters_)));
  }

  void AddPorts(const Indices* indices,
                const flatbuffers::Vector<flatbuffers::Offset<Port>>* ports,
                std::vector<int64_t>& arguments) const {
    for (int64_t i = 0; i < SizeOrZero(indices); ++i) {
      const int index = indices->Get(static_cast<unsigned>(i));
      arguments.push_back(
          BytesOf(*ports->Get(static_cast<unsigned>(index))->type()));
    }
  }

  void AddGlobals(const Indices* indices,
                  std::vector<int64_t>& arguments) const {
    for (int64_t i = 0; i < SizeOrZero(indices); ++i)
      arguments.push_back(GlobalBytes(indices->Get(static_cast<unsigned>(i))));
  }

  // `arguments` gives the bytes of the function's arguments; the last `results`
  // of them are written.
  absl::Status CheckCalled(int index, const std::vector<int64_t>& arguments,
                           int64_t results) const {
    if (index < 0 || index >= static_cast<int64_t>(needed_.size()))
      return Bad(absl::StrCat("function ", index, " of ", needed_.size()));
    const Function& function =
        *program_.functions()->Get(static_cast<unsigned>(index));
    if (function.arguments() != static_cast<int64_t>(arguments.size()) ||
        function.results() != results) {
      return Bad(absl::StrCat("expected ", arguments.size(), " arguments, ",
                              results, " of them results, found ",
                              function.arguments(), ", ", function.results(),
                              " of them results"));
    }
    const std::vector<int64_t>& needed = needed_[static_cast<size_t>(index)];
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (needed[i] > arguments[i])
        return Bad(absl::StrCat("argument ", i, " has ", arguments[i],
                                " bytes, but ", needed[i], " are used"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckMain() const {
    PARTITA_RETURN_IF_ERROR(
        CheckIndices("input", entry_.inputs(), SizeOrZero(program_.inputs())));
    PARTITA_RETURN_IF_ERROR(CheckIndices("output", entry_.outputs(),
                                         SizeOrZero(program_.outputs())));
    PARTITA_RETURN_IF_ERROR(
        CheckIndices("global", entry_.main_globals(), parameters_ + derived_));
    std::vector<int64_t> arguments;
    AddPorts(entry_.inputs(), program_.inputs(), arguments);
    AddGlobals(entry_.main_globals(), arguments);
    AddPorts(entry_.outputs(), program_.outputs(), arguments);
    AddGlobals(entry_.main_updates(), arguments);
    return CheckCalled(
        entry_.main(), arguments,
        SizeOrZero(entry_.outputs()) + SizeOrZero(entry_.main_updates()));
  }

  absl::Status CheckInit() const {
    PARTITA_RETURN_IF_ERROR(
        CheckIndices("parameter", entry_.init_parameters(), parameters_));
    if (entry_.init() == -1) {
      if (derived_ == 0) return absl::OkStatus();
      return Bad(
          absl::StrCat("there are ", derived_,
                       " derived values, but no function computes them"));
    }
    std::vector<int64_t> arguments;
    AddGlobals(entry_.init_parameters(), arguments);
    for (int64_t i = 0; i < derived_; ++i)
      arguments.push_back(GlobalBytes(parameters_ + i));
    return CheckCalled(entry_.init(), arguments, derived_);
  }

  const Program& program_;
  const Entry& entry_;
  const std::vector<std::vector<int64_t>>& needed_;
  const int64_t parameters_, derived_;
};

// Checks that copies of a parameter stay equal, and that every element of the
// model belongs to an entry.
absl::Status CheckTogether(const Program& program) {
  Used inputs(SizeOrZero(program.inputs())),
      outputs(SizeOrZero(program.outputs())),
      held(SizeOrZero(program.parameters())),
      updated(SizeOrZero(program.parameters()));
  for (const Entry* entry : *program.entries()) {
    inputs.Add(entry->inputs());
    outputs.Add(entry->outputs());
    held.Add(entry->main_globals());
    held.Add(entry->init_parameters());
    held.Add(entry->main_updates());
    updated.Add(entry->main_updates());
  }
  const auto unused = [](const char* what, const flatbuffers::String* name) {
    return Bad(absl::StrCat(what, " '", name->str(), "': no entry uses it"));
  };
  for (unsigned i = 0; i < SizeOrZero(program.inputs()); ++i)
    if (!inputs.Has(i))
      return unused("input", program.inputs()->Get(i)->name());
  for (unsigned i = 0; i < SizeOrZero(program.outputs()); ++i)
    if (!outputs.Has(i))
      return unused("output", program.outputs()->Get(i)->name());
  for (unsigned i = 0; i < SizeOrZero(program.parameters()); ++i)
    if (!held.Has(i))
      return unused("parameter", program.parameters()->Get(i)->name());
  for (unsigned i = 0; i < program.entries()->size(); ++i) {
    const Entry& entry = *program.entries()->Get(i);
    std::set<int> own;
    for (int64_t j = 0; j < SizeOrZero(entry.main_updates()); ++j)
      own.insert(entry.main_updates()->Get(static_cast<unsigned>(j)));
    for (const Indices* list : {entry.main_globals(), entry.init_parameters()})
      for (int64_t j = 0; j < SizeOrZero(list); ++j) {
        const int index = list->Get(static_cast<unsigned>(j));
        if (index >= SizeOrZero(program.parameters()) || !updated.Has(index) ||
            own.count(index) > 0)
          continue;
        return Bad(absl::StrCat("parameter '",
                                program.parameters()
                                    ->Get(static_cast<unsigned>(index))
                                    ->name()
                                    ->str(),
                                "': another entry updates it, but entry ", i,
                                ", which reads it, does not"));
      }
  }
  return absl::OkStatus();
}

absl::Status CheckShardApart(const Program& program, const Shard* shard) {
  if (shard == nullptr) return absl::OkStatus();
  for (int64_t i = 0; i < SizeOrZero(shard->dims()); ++i)
    PARTITA_RETURN_IF_ERROR(ValidateApart(
        program, shard->dims()->Get(static_cast<unsigned>(i))->axes()));
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateApart(const Program& program, const AxisList* axes) {
  for (int64_t i = 0; i < SizeOrZero(program.pipeline()); ++i) {
    for (int64_t j = 0; j < SizeOrZero(axes); ++j) {
      const AxisPart& part = *axes->Get(static_cast<unsigned>(j));
      if (!Independent(*program.pipeline()->Get(static_cast<unsigned>(i)),
                       part))
        return Bad(absl::StrCat(
            "axis '",
            program.mesh()
                ->axes()
                ->Get(static_cast<unsigned>(part.axis()))
                ->name()
                ->str(),
            "' belongs to the pipeline: its devices run different functions"));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidatePipeline(const Program& program) {
  const int64_t entries = SizeOrZero(program.entries());
  if (entries == 0) return Bad("expected at least one entry, found none");
  const absl::StatusOr<int64_t> devices =
      ValidateAxes(program.mesh(), program.pipeline());
  if (!devices.ok()) return At("pipeline", devices.status());
  if (*devices != entries)
    return Bad(absl::StrCat("pipeline: expected an entry for each of ",
                            *devices, " devices, found ", entries));
  for (int64_t i = 0; i < SizeOrZero(program.inputs()); ++i) {
    const Port& port = *program.inputs()->Get(static_cast<unsigned>(i));
    PARTITA_RETURN_IF_ERROR(At(absl::StrCat("input '", port.name()->str(), "'"),
                               CheckShardApart(program, port.shard())));
  }
  for (int64_t i = 0; i < SizeOrZero(program.outputs()); ++i) {
    const Port& port = *program.outputs()->Get(static_cast<unsigned>(i));
    PARTITA_RETURN_IF_ERROR(
        At(absl::StrCat("output '", port.name()->str(), "'"),
           CheckShardApart(program, port.shard())));
  }
  for (int64_t i = 0; i < SizeOrZero(program.parameters()); ++i) {
    const Parameter& parameter =
        *program.parameters()->Get(static_cast<unsigned>(i));
    const std::string where =
        absl::StrCat("parameter '", parameter.name()->str(), "'");
    PARTITA_RETURN_IF_ERROR(
        At(where, CheckShardApart(program, parameter.shard())));
    if (const auto* source = parameter.source_as_CoordinateSource())
      PARTITA_RETURN_IF_ERROR(
          At(where, ValidateApart(program, source->axes())));
  }
  return absl::OkStatus();
}

absl::Status ValidateEntries(const Program& program,
                             const std::vector<std::vector<int64_t>>& needed) {
  const unsigned count = program.entries()->size();
  for (unsigned i = 0; i < count; ++i) {
    PARTITA_RETURN_IF_ERROR(
        EntryValidator(program, *program.entries()->Get(i), needed)
            .Run(count == 1 ? "" : absl::StrCat("entry ", i, ", ")));
  }
  return CheckTogether(program);
}

}  // namespace partita::program
