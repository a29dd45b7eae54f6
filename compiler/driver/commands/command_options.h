// Options that several commands of `partita` have.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_COMMAND_OPTIONS_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_COMMAND_OPTIONS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/import_model.h"
#include "compiler/driver/plan_arguments.h"
#include "compiler/driver/run_phase.h"
#include "compiler/driver/session.h"
#include "compiler/driver/train_options.h"
#include "llvm/Support/JSON.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace partita::driver {

inline constexpr char kAnyModel[] =
    "An .onnx or .mlir file, a Hugging Face folder, or a family's name "
    "(coatnet-0)";

// How to open a model.
struct ModelArguments {
  std::string model, optional_inputs;
  std::vector<std::string> dims, shapes;
  ImportOptions options;
  const CLI::App* command = nullptr;  // that has them, once added

  // `what` says which models the command takes.
  void add(CLI::App* command, const std::string& what);
  // The first of its options that is given, as "--dim"; none: empty.
  std::string given() const;
  // Reads the texts of options; prints what is wrong.
  bool finish();
  // Null after diagnostics where the model cannot be read.
  mlir::OwningOpRef<mlir::ModuleOp> import(Session& session) const;
  // Where weights that the model names by file are.
  std::string folder() const;
};

// Prints "error: ...".
void complain(const std::string& what);

// Of a command: paths it reads, which may be empty, name nothing or be folders,
// and options with the paths that they say it writes.
struct FilesOfCommand {
  std::vector<std::string> read;
  std::vector<std::pair<std::string, std::string>> written;
};

// False after a message where one that is read would be written over: the same
// file, or a configuration or weights in a folder that is read.
bool keepsWhatItReads(const FilesOfCommand& files);

void addPlan(PlanArguments& arguments, CLI::App* command);
// --train and what belongs to it.
void addTraining(TrainOptions& train, CLI::App* command);
// Of a plan for training; behind addTraining.
void addTrainingPlan(PlanArguments& arguments, CLI::App* command);
void addJson(bool& json, CLI::App* command);

// A whole number of at least `least`.
CLI::Validator wholeNumber(int64_t least);

// The plan that the options describe. After a message kUsageError where they
// are wrong by themselves, kUserError where the plan file is.
ExitCode finish(const PlanArguments& arguments,
                std::optional<plan::Plan>& plan);
// What some of them say; false after a message.
template <typename T>
bool take(absl::StatusOr<T> found, T& value) {
  if (found.ok())
    value = *std::move(found);
  else
    complain(std::string(found.status().message()));
  return found.ok();
}
// The same for --precision.
bool finish(const PlanArguments& arguments, plan::Precision& precision);

// Prints `facts` as one line, or as a table.
void show(const llvm::json::Value& facts, bool json,
          void (*print)(const llvm::json::Value&, llvm::raw_ostream&));

ExitCode exitCodeOf(Fault fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_COMMAND_OPTIONS_H_
