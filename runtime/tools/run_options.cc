// The flags of partita-run.
#include "runtime/tools/run_options.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/session/devices.h"
#include "runtime/session/zero_one.h"

namespace partita::tools {
namespace {

absl::Status Wrong(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

session::DeviceSet DevicesFor(bool trains) {
  return trains ? session::DeviceSet::kExecuting : session::DeviceSet::kAll;
}

absl::Status SetSeed(const std::string& value, RunOptions& options) {
  uint64_t seed;
  if (!absl::SimpleAtoi(value, &seed))
    return Wrong(absl::StrCat("expected a whole number, found '", value, "'"));
  options.random_seed = seed;
  return absl::OkStatus();
}

// Reads "f32=1.2e11,memory=2e10".
absl::Status SetLimits(const std::string& value, RunOptions& options) {
  executor::MachineLimits limits;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(value, ','))) {
    const size_t equals = part.find('=');
    double number = 0;
    if (equals == std::string::npos || equals == 0 ||
        !absl::SimpleAtod(part.substr(equals + 1), &number) ||
        !std::isfinite(number) || number <= 0)
      return Wrong(absl::StrCat(
          "expected TYPE=FLOP/S or memory=BYTES/S with positive numbers, as in "
          "f32=1.2e11,memory=2e10, found '",
          part, "'"));
    const std::string name = part.substr(0, equals);
    (name == "memory" ? limits.memory : limits.flops[name]) = number;
  }
  options.limits = std::move(limits);
  return absl::OkStatus();
}

std::map<std::string, FlagSetter> ValueFlags(RunOptions& options) {
  return {{"--input", SetInput(options)},
          {"--inputs", SetString(options.inputs_file)},
          {"--output-dir", SetString(options.output_dir)},
          {"--random-inputs",
           [&](const std::string& value) { return SetSeed(value, options); }},
          {"--threads", SetCount(options.threads, 1, session::kMostThreads)},
          {"--devices", SetCount(options.devices, 1)},
          {"--limits",
           [&](const std::string& value) { return SetLimits(value, options); }},
          {"--timeout", SetTimeout(options)},
          {"--warmup", SetCount(options.warmup, 0)},
          {"--repeat", SetCount(options.repeat, 1)},
          {"--weights-dir", SetString(options.weights_dir)},
          {"--device", SetDevice(options, /*trains=*/false)}};
}

}  // namespace

FlagSetter SetInput(RunOptions& options) {
  return [&options](const std::string& value) {
    const size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0 ||
        equals + 1 == value.size()) {
      return Wrong(absl::StrCat("expected NAME=FILE.npy, found '", value, "'"));
    }
    std::string name = value.substr(0, equals);
    for (const auto& [other, file] : options.inputs)
      if (other == name)
        return Wrong(absl::StrCat("expected one file for input '", name,
                                  "', found '", file, "' and '",
                                  value.substr(equals + 1),
                                  "'; leave out one of the two"));
    options.inputs.emplace_back(std::move(name), value.substr(equals + 1));
    return absl::OkStatus();
  };
}

FlagSetter SetDevice(RunOptions& options, bool trains) {
  return [&options, trains](const std::string& value) {
    const session::DeviceList& devices = session::Devices();
    const device::DeviceKind* const found = session::FindDevice(devices, value);
    if (found != nullptr && (found->executes || !trains)) {
      options.device = value;
      return absl::OkStatus();
    }
    const std::string expected = absl::StrCat(
        "expected ", session::DeviceNames(devices, DevicesFor(trains)),
        ", found '", value, "'");
    return Wrong(found == nullptr
                     ? expected
                     : absl::StrCat(expected,
                                    ", which executes nothing and so cannot "
                                    "train; partita-run MODEL --device ",
                                    value, " plans and counts"));
  };
}

FlagSetter SetTimeout(RunOptions& options) {
  return [&options](const std::string& value) {
    const absl::StatusOr<double> seconds =
        ParseNumber(value, 0.001, 1e6, "seconds, 0.001 to 1000000");
    if (seconds.ok()) options.timeout = *seconds;
    return seconds.status();
  };
}

absl::StatusOr<RunOptions> ParseRunOptions(
    const std::vector<std::string>& arguments) {
  RunOptions options;
  const Flags flags = {ValueFlags(options),
                       {{"--json", &options.json},
                        {"--profile", &options.profile},
                        {"--share-gpu", &options.share_gpu},
                        {"--help", &options.help},
                        {"--version", &options.version},
                        {"-h", &options.help}}};
  PARTITA_RETURN_IF_ERROR(ParseFlags(arguments, flags, options.model));
  if (!options.help && !options.version && options.model.empty())
    return Wrong("expected a model, found none");
  if (session::IsZeroOne(options.model))
    return Wrong(absl::StrCat(
        "expected one program, found ", options.model,
        ", the folder of the three kinds of steps of 0/1 Adam; train it with "
        "partita train ",
        options.model, ", or run one kind alone, as ",
        session::ZeroOnePath(options.model, train::ZeroOneStep::kExchange)));
  PARTITA_RETURN_IF_ERROR(CheckDeviceOptions(options));
  return options;
}

absl::Status CheckDeviceOptions(const RunOptions& options) {
  const device::DeviceKind* const found =
      session::FindDevice(session::Devices(), options.device);
  if (!options.share_gpu || found == nullptr ||
      !session::RefusesShareGpu(*found))
    return absl::OkStatus();
  return Wrong(absl::StrCat(
      "--share-gpu: expected devices that are GPUs, found --device ",
      options.device, "; leave out one of the two"));
}

std::string DeviceHelp(bool trains) {
  constexpr size_t kColumn = 27;  // where descriptions begin
  const session::DeviceSet which = DevicesFor(trains);
  const std::string indent(kColumn, ' ');
  std::string text = absl::StrCat(
      "  --device ", session::DeviceNames(session::Devices(), which, "|"));
  text +=
      text.size() + 2 > kColumn ? "\n" + indent : indent.substr(text.size());
  text +=
      "Run on this kind of device; default: the target that the model was "
      "compiled for";
  for (const device::DeviceKind& device : session::Devices())
    if (!device.note.empty() && (device.executes || !trains))
      absl::StrAppend(&text, ".\n", indent, device.name, " ", device.note);
  return text + "\n";
}

std::string RunHelp() {
  return absl::StrCat(
      R"(usage: partita-run [run] MODEL.partita [options]
       partita-run train MODEL.partita [options]   (see partita-run train --help)
       partita-run generate FOLDER [options]       (see partita-run generate --help)

Runs a compiled model and prints its outputs, times and memory.

Inputs
  --input NAME=FILE.npy    Read an input from a file; may be repeated. Instead of a file, give a pattern:
                             zeros, ones, arange (0, 1, 2 ...), random:LOW:HIGH (from LOW to below HIGH)
  --inputs FILE            Read inputs from a safetensors file, by name ("x" or "in.x")
  --random-inputs SEED     Fill the remaining floating-point inputs with random numbers: mean 0, deviation 1
Outputs
  --output-dir DIR         Write each output as DIR/NAME.npy
  --json                   Print one JSON object instead of tables
  --profile                Print the time of each kernel and of each layer
  --limits LIST            Compare the profile with these speeds of the machine, over all its devices, e.g.
                           f32=1.2e11,memory=2e10 (FLOP/s of products, bytes/s). `partita run` gives what
                           `partita measure` measured
Execution
  --threads N              Use N threads over all devices of this process; default: one per processor
  --devices N              Run N devices as threads of this process; must equal the number that the model was
                           compiled for, which is the default. Under mpirun, srun and torchrun each process is one
  --timeout SECONDS        Fail if a device makes no progress for this long; default 60
  --warmup N               Run N times before the measured runs; default 0, or 1 with --repeat
  --repeat N               Measure N runs; default 1
  --weights-dir DIR        Resolve relative weight paths in DIR; default: the model's folder
)",
      DeviceHelp(/*trains=*/false),
      R"(  --share-gpu              Run all devices of this machine on GPU 0, in turns, each with its own streams and memory.
                           Threads of one process exchange in its memory, several processes through host memory.
                           To check a divided model with one GPU, whose memory must hold all devices
  --version                Print the version
  --help                   Print this text

Exit code: 0 success, 1 invalid files or inputs, 2 wrong command line, 70 a bug in Partita.
)");
}

}  // namespace partita::tools
