// partita bench: compiles a model and compares it with other systems on this
// machine.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/driver/bench/bench.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/commands/measured_machine.h"
#include "compiler/driver/commands/runner.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/console.h"
#include "compiler/driver/model_plan.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/processors.h"

namespace partita::driver {
namespace {

using llvm::formatv;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

struct BenchCommand {
  ModelArguments model;
  PlanArguments plan;
  CompileOptions options;
  std::vector<int> threads, batches;
  std::vector<std::string> against = {"onnxruntime", "torch"};
  std::vector<std::string> peer_models;
  std::string python;
  int rounds = 5;
  double seconds = 0.5;
  bool compile = false, json = false;
};

// A temporary folder, deleted with this object.
class Folder {
 public:
  Folder() {
    if (llvm::sys::fs::createUniqueDirectory("partita-bench", path_))
      path_.clear();
  }
  ~Folder() { llvm::sys::fs::remove_directories(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path() const { return path_.str().str(); }

 private:
  llvm::SmallString<128> path_;
};

// The systems to compare with. A system that cannot run has a problem.
std::vector<BenchPeer> peersOf(const BenchCommand& command) {
  std::vector<BenchPeer> peers;
  std::vector<std::string> files = command.peer_models;
  files.push_back(command.model.model);
  for (const std::string& name : command.against) {
    if (name == "none") continue;
    BenchPeer peer;
    peer.name = name;
    const std::string extension = name == "onnxruntime" ? ".onnx" : ".pt2";
    for (const std::string& file : files)
      if (peer.model.empty() && llvm::StringRef(file).ends_with(extension))
        peer.model = file;
    if (peer.model.empty())
      peer.problem = "it reads " + extension +
                     " files; give one of this model with --peer-model";
    else if (command.python.empty())
      peer.problem =
          "expected python3 on PATH, found none; name one with --python";
    peers.push_back(peer);
    if (name != "torch" || !command.compile) continue;
    peer.name = "torch-compile";
    peers.push_back(std::move(peer));
  }
  return peers;
}

// Speeds of the machine with `threads` threads. Products of fewer threads than
// processors have a part of the machine's rate; memory is shared.
BenchLimits limitsOf(int threads, core::Precision precision) {
  const std::optional<planner::Cluster> machine = measuredMachine();
  if (!machine) return {};
  const double share =
      std::min(1.0, static_cast<double>(threads) / base::MachineProcessors());
  BenchLimits limits;
  limits.flops = share * machine->devices *
                 machine->device.peak[static_cast<size_t>(precision)];
  limits.memory = machine->devices * machine->device.memory_bandwidth;
  return limits;
}

// Compiles the model for a batch; 0: as it is.
ExitCode compile(BenchCommand& command, int batch, const std::string& output) {
  ModelArguments model = command.model;
  CompileOptions options = command.options;
  if (batch > 0) model.options.dims["batch"] = batch;
  options.output = output;
  options.source_folder = model.folder();
  Session session;
  auto module = model.import(session);
  if (!module) return kUserError;
  if (!options.plan) options.plan = planOfModel(*module, model.model);
  if (!module->getName()) module->setName("model");
  Fault fault = Fault::kUser;
  if (mlir::failed(compileToFile(*module, options, &fault)))
    return exitCodeOf(fault);
  return kSuccess;
}

// The largest of a row's ratios: the one with the fastest peer.
std::optional<double> worstRatio(const Object& row) {
  std::optional<double> worst;
  for (const Value& system : *row.getArray("systems"))
    if (auto ratio = system.getAsObject()->getNumber("ratio"))
      worst = std::max(*ratio, worst.value_or(0.0));
  return worst;
}

void warnOfDifferences(const Object& row, core::Precision precision) {
  const double tolerance = precision == core::Precision::kF32 ? 1e-3 : 5e-2;
  for (const Value& value : *row.getArray("systems")) {
    const Object& system = *value.getAsObject();
    const auto found = system.getNumber("difference");
    const double allowed =
        tolerance * system.getNumber("magnitude").value_or(0.0);
    if (!system.get("difference") || (found && *found <= allowed)) continue;
    messages() << formatv(
        "warning: outputs differ from those of {0} by more than {1:E0} of the "
        "largest one: one of the two is wrong, or the model amplifies "
        "rounding\n",
        *system.getString("name"), tolerance);
  }
}

void print(const Value& value, llvm::raw_ostream& stream) {
  const Object& facts = *value.getAsObject();
  for (const Value& each : *facts.getArray("rows")) {
    const Object& row = *each.getAsObject();
    const auto batch = row.getInteger("batch");
    stream << formatv("{0}{1}, threads: {2}\n", *facts.getString("model"),
                      batch ? formatv(", batch {0}", *batch).str() : "",
                      *row.getInteger("threads"));
    printMeasurement(row, stream);
    stream << "\n";
  }
  if (auto mean = facts.getNumber("mean_ratio"))
    stream << formatv(
        "beside the fastest other system, Partita takes {0:F2} of its time in "
        "the geometric mean of {1} rows\n",
        *mean, *facts.getInteger("compared_rows"));
  stream << "ms: median over rounds; ratio: Partita's time over the system's, "
            "in the same round; CPU ms: processor time of a run, of all "
            "threads; memory: peak of the process\n";
  if (!facts.getBoolean("measured_machine").value_or(false))
    stream << "shares of the machine's limits: unknown; run `partita measure` "
              "once\n";
}

ExitCode measure(BenchCommand& command, core::Precision precision,
                 Array& rows) {
  const Folder folder;
  if (folder.path().empty()) {
    complain("cannot make a temporary folder");
    return kUserError;
  }
  const std::vector<int> batches =
      command.batches.empty() ? std::vector<int>{0} : command.batches;
  for (const int batch : batches) {
    const std::string artifact = folder.path() + "/model.partita";
    if (ExitCode code = compile(command, batch, artifact); code != kSuccess)
      return code;
    for (const int threads : command.threads) {
      BenchOptions options;
      options.artifact = artifact;
      options.folder = folder.path();
      options.threads = threads;
      options.rounds = command.rounds;
      options.seconds = command.seconds;
      options.python = command.python;
      options.peers = peersOf(command);
      options.limits = limitsOf(threads, precision);
      options.run = outputOfRunner;
      const std::string place = formatv(
          "{0}threads {1}, ",
          batch > 0 ? formatv("batch {0}, ", batch).str() : "", threads);
      options.progress = [&](const std::string& what) {
        messages() << place << what << "\n";
      };
      Object row;
      if (!take(measureModel(options), row)) return kUserError;
      if (batch > 0) row["batch"] = batch;
      warnOfDifferences(row, precision);
      rows.push_back(std::move(row));
    }
  }
  return kSuccess;
}

Value factsOf(const BenchCommand& command, Array rows) {
  std::vector<double> ratios;
  for (const Value& row : rows)
    if (auto ratio = worstRatio(*row.getAsObject())) ratios.push_back(*ratio);
  Object facts{{"kind", "bench"},
               {"model", command.model.model},
               {"measured_machine", measuredMachine().has_value()},
               {"compared_rows", static_cast<int64_t>(ratios.size())}};
  if (!ratios.empty()) facts["mean_ratio"] = geometricMean(ratios);
  facts["rows"] = std::move(rows);
  return facts;
}

// Returns false after a message if options exclude each other.
bool agree(const BenchCommand& command) {
  if (!command.batches.empty() && command.model.options.dims.count("batch")) {
    complain("expected one of --batch and --dim batch=, found both");
    return false;
  }
  for (const std::string& file : command.peer_models) {
    if (!llvm::StringRef(file).ends_with(".onnx") &&
        !llvm::StringRef(file).ends_with(".pt2")) {
      complain("--peer-model: expected an .onnx or .pt2 file, found '" + file +
               "'");
      return false;
    }
    if (!llvm::sys::fs::exists(file)) {
      complain("--peer-model: expected a file, found no " + file);
      return false;
    }
  }
  return true;
}

int run(BenchCommand& command) {
  if (!command.model.finish() || !agree(command)) return kUsageError;
  core::Precision precision = core::Precision::kF32;
  if (!finish(command.plan, precision)) return kUsageError;
  command.options.precision = precision;
  if (ExitCode code = finish(command.plan, command.options.plan);
      code != kSuccess)
    return code;
  if (std::string wrong = prepareOptions(command.options); !wrong.empty()) {
    complain(wrong);
    return kUserError;
  }
  if (command.python.empty()) {
    if (auto found = llvm::sys::findProgramByName("python3"))
      command.python = *found;
  } else if (!llvm::sys::fs::can_execute(command.python)) {
    complain("--python: expected a program, found '" + command.python + "'");
    return kUsageError;
  }
  if (command.threads.empty()) command.threads = {base::AvailableProcessors()};
  Array rows;
  if (ExitCode code = measure(command, precision, rows); code != kSuccess)
    return code;
  show(factsOf(command, std::move(rows)), command.json, print);
  return kSuccess;
}

}  // namespace

Command addBench(CLI::App& app) {
  auto state = std::make_shared<BenchCommand>();
  CLI::App* command = app.add_subcommand(
      "bench", "Compare a model with onnxruntime and PyTorch on this machine");
  state->model.add(command, kAnyModel);
  command
      ->add_option("--threads", state->threads,
                   "Measure with each of these numbers of threads: 1,2; "
                   "default: one per processor")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--batch", state->batches,
                   "Measure with each of these sizes of the dimension named "
                   "batch: 1,8")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--rounds", state->rounds,
                   "Run the systems in turns this often; default: 5")
      ->check(CLI::Range(1, 10000));
  command
      ->add_option("--seconds", state->seconds,
                   "Run each system this long in each round; default: 0.5")
      ->check(CLI::Range(0.0, 3600.0));
  command
      ->add_option("--against", state->against,
                   "Compare with onnxruntime, torch or none; default: "
                   "onnxruntime,torch. A missing package leaves a note in the "
                   "table")
      ->delimiter(',')
      ->check(CLI::IsMember({"onnxruntime", "torch", "none"}));
  command->add_flag("--compile", state->compile,
                    "Compare with torch.compile as well as with eager PyTorch");
  command
      ->add_option("--peer-model", state->peer_models,
                   "The same model in a format that a compared system reads: "
                   ".onnx for onnxruntime, .pt2 for torch")
      ->allow_extra_args(false);
  command->add_option("--python", state->python,
                      "The Python of the compared systems; default: python3 on "
                      "PATH. Partita itself needs none");
  addPlan(state->plan, command);
  addJson(state->json, command);
  command->footer(
      "Systems run in turns, and one is stopped while another runs. Inputs are "
      "random.\n"
      "Example:\n  partita bench model.onnx --dim seq=128 --batch 1,8 "
      "--threads "
      "1,2 --peer-model model.pt2 --python venv/bin/python");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
