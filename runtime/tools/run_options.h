// The command line of partita-run.
#ifndef PARTITA_RUNTIME_TOOLS_RUN_OPTIONS_H_
#define PARTITA_RUNTIME_TOOLS_RUN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/executor/profile.h"
#include "runtime/session/options.h"
#include "runtime/tools/flags.h"

namespace partita::tools {

struct RunOptions : session::SessionOptions {
  bool help = false;
  bool version = false;  // print the version, do nothing else
  std::vector<std::pair<std::string, std::string>>
      inputs;  // name, and file or content
  std::string inputs_file;
  std::string output_dir;
  std::optional<uint64_t> random_seed;
  std::optional<int> warmup;
  int repeat = 1;
  bool json = false;
  bool profile = false;
  // Speeds of this machine, summed over its devices; null: unknown.
  std::optional<executor::MachineLimits> limits;
};

// `arguments` exclude the program's name. InvalidArgument says which argument
// is wrong and what was expected.
absl::StatusOr<RunOptions> ParseRunOptions(
    const std::vector<std::string>& arguments);

// Setters of flags shared by commands; the options must outlive them.
FlagSetter SetInput(RunOptions& options);    // --input
FlagSetter SetTimeout(RunOptions& options);  // --timeout
// --device; `trains`: the command trains, so a device that executes nothing is
// refused.
FlagSetter SetDevice(RunOptions& options, bool trains);

// Refuses device options that contradict each other.
absl::Status CheckDeviceOptions(const RunOptions& options);

// The lines of --help about --device, which name all devices, or all devices
// that can train.
std::string DeviceHelp(bool trains);

// The text of --help.
std::string RunHelp();

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_RUN_OPTIONS_H_
