// Parsing of the command line: a table of flags.
#include "runtime/tools/run_options.h"

#include <functional>
#include <limits>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::tools {
namespace {

absl::Status Wrong(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

// A flag with a value.
using Setter = std::function<absl::Status(const std::string&)>;

Setter SetString(std::string& target) {
  return [&target](const std::string& value) {
    target = value;
    return value.empty() ? Wrong("expected a value, found nothing")
                         : absl::OkStatus();
  };
}

template <typename Target>
Setter SetCount(Target& target, int minimum) {
  return [&target, minimum](const std::string& value) {
    int number;
    if (!absl::SimpleAtoi(value, &number) || number < minimum) {
      return Wrong(absl::StrCat("expected a whole number of at least ", minimum,
                                ", found '", value, "'"));
    }
    target = number;
    return absl::OkStatus();
  };
}

absl::Status SetInput(const std::string& value, RunOptions& options) {
  const size_t equals = value.find('=');
  if (equals == std::string::npos || equals == 0 ||
      equals + 1 == value.size()) {
    return Wrong(absl::StrCat("expected NAME=FILE.npy, found '", value, "'"));
  }
  options.inputs.emplace_back(value.substr(0, equals),
                              value.substr(equals + 1));
  return absl::OkStatus();
}

absl::Status SetSeed(const std::string& value, RunOptions& options) {
  uint64_t seed;
  if (!absl::SimpleAtoi(value, &seed))
    return Wrong(absl::StrCat("expected a whole number, found '", value, "'"));
  options.random_seed = seed;
  return absl::OkStatus();
}

absl::Status SetDevice(const std::string& value, RunOptions& options) {
  if (value != "cpu" && value != "null")
    return Wrong(absl::StrCat("expected cpu or null, found '", value, "'"));
  options.device = value;
  return absl::OkStatus();
}

absl::Status SetTimeout(const std::string& value, RunOptions& options) {
  double seconds;
  if (!absl::SimpleAtod(value, &seconds) || !(seconds >= 0.001) ||
      seconds > 1e6) {
    return Wrong(absl::StrCat("expected seconds, 0.001 to 1000000, found '",
                              value, "'"));
  }
  options.timeout = seconds;
  return absl::OkStatus();
}

std::map<std::string, Setter> ValueFlags(RunOptions& options) {
  return {
      {"--input",
       [&](const std::string& value) { return SetInput(value, options); }},
      {"--inputs", SetString(options.inputs_file)},
      {"--output-dir", SetString(options.output_dir)},
      {"--random-inputs",
       [&](const std::string& value) { return SetSeed(value, options); }},
      {"--threads", SetCount(options.threads, 1)},
      {"--devices", SetCount(options.devices, 1)},
      {"--timeout",
       [&](const std::string& value) { return SetTimeout(value, options); }},
      {"--warmup", SetCount(options.warmup, 0)},
      {"--repeat", SetCount(options.repeat, 1)},
      {"--weights-dir", SetString(options.weights_dir)},
      {"--device",
       [&](const std::string& value) { return SetDevice(value, options); }}};
}

}  // namespace

absl::StatusOr<RunOptions> ParseRunOptions(
    const std::vector<std::string>& arguments) {
  RunOptions options;
  const std::map<std::string, Setter> value_flags = ValueFlags(options);
  const std::map<std::string, bool*> switches = {
      {"--json", &options.json},
      {"--profile", &options.profile},
      {"--help", &options.help},
      {"-h", &options.help}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.empty() || argument[0] != '-') {
      if (!options.model.empty())
        return Wrong(absl::StrCat("expected one model, found '", options.model,
                                  "' and '", argument, "'"));
      options.model = argument;
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    if (const auto found = switches.find(argument); found != switches.end()) {
      *found->second = true;
      continue;
    }
    const auto found = value_flags.find(flag);
    if (found == value_flags.end())
      return Wrong(absl::StrCat("unknown option '", argument, "'"));
    if (equals == std::string::npos && i + 1 == arguments.size())
      return Wrong(absl::StrCat(flag, ": expected a value, found nothing"));
    const absl::Status status = found->second(
        equals == std::string::npos ? arguments[++i]
                                    : argument.substr(equals + 1));
    if (!status.ok()) return Wrong(absl::StrCat(flag, ": ", status.message()));
  }
  if (!options.help && options.model.empty())
    return Wrong("expected a model, found none");
  return options;
}

const char* RunHelp() {
  return R"(usage: partita-run MODEL.partita [options]

Runs a compiled model and prints its outputs, times and memory.

Inputs
  --input NAME=FILE.npy    an input from a file; may be repeated. In place of a file:
                             zeros, ones, arange (0, 1, 2 ...), random:LOW:HIGH (from LOW to below HIGH)
  --inputs FILE            inputs from a safetensors file, by name ("x" or "in.x")
  --random-inputs SEED     fills the remaining floating-point inputs: mean 0, deviation 1
Outputs
  --output-dir DIR         writes each output as DIR/NAME.npy
  --json                   prints one JSON object in place of tables
  --profile                prints the time of each kernel
Execution
  --threads N              shared by the devices of this process; default: one per processor
  --devices N              how many devices, as threads of this process; must be as many as the model was
                           compiled for, which is the default. Under mpirun and srun each process is one
  --timeout SECONDS        how long devices wait for one that makes no progress; default 60
  --warmup N               runs before the measured ones; default 0, or 1 with --repeat
  --repeat N               measured runs; default 1
  --weights-dir DIR        where relative paths of weights begin; default: the model's folder
  --device cpu|null        null plans and counts, and executes nothing
  --help

Exit code: 0 success, 1 something is wrong with the files or inputs, 2 wrong command line, 70 a bug of ours.
)";
}

}  // namespace partita::tools
