// Options that several commands of `partita` share.
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
    "An .onnx, .pt2 or .mlir file, a program of jax.export, a Hugging Face "
    "folder, or a family's name (coatnet-0)";

// Options that say how to open a model.
struct ModelArguments {
  std::string model, optional_inputs;
  std::vector<std::string> dims, shapes;
  ImportOptions options;
  const CLI::App* command = nullptr;  // set by add()

  // `what` says in the help which models the command takes.
  void add(CLI::App* command, const std::string& what);
  // The first of these options that was given, e.g. "--dim"; empty if none was.
  std::string given() const;
  // Parses the texts of options. Prints an error and returns false on failure.
  bool finish();
  // Imports for training if `train` has an optimizer. With --lora and without
  // --trained, it trains the adapters only.
  void prepareFor(TrainOptions& train);
  // Returns null after diagnostics if the model cannot be read.
  mlir::OwningOpRef<mlir::ModuleOp> import(Session& session) const;
  // The folder that relative weight paths of the model are relative to.
  std::string folder() const;
};

// Prints "error: ...".
void complain(const std::string& what);

// Files of a command: paths that it reads, which may be empty, missing or
// folders; and options with the paths that they write.
struct FilesOfCommand {
  std::vector<std::string> read;
  std::vector<std::pair<std::string, std::string>> written;
};

// Returns false after a message if a written path would overwrite an input: the
// same file, or a configuration or weights in an input folder.
bool keepsInputFiles(const FilesOfCommand& files);

void addPlan(PlanArguments& arguments, CLI::App* command);
// Adds --train and the options that need it.
void addTraining(TrainOptions& train, CLI::App* command);
// Adds the options of a plan for training. Call addTraining first.
void addTrainingPlan(PlanArguments& arguments, CLI::App* command);
void addJson(bool& json, CLI::App* command);

// A whole number of at least `least`.
CLI::Validator wholeNumber(int64_t least);

// A number above 0 and up to 1.
CLI::Validator shareAboveZero();

// The plan that the options describe. After a message, returns kUsageError if
// the options are wrong, kUserError if the plan file is.
ExitCode finish(const PlanArguments& arguments,
                std::optional<plan::Plan>& plan);
// Takes the value of one option; returns false after a message if it is wrong.
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
