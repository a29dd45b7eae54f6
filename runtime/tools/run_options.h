// The command line of partita-run.
#ifndef PARTITA_RUNTIME_TOOLS_RUN_OPTIONS_H_
#define PARTITA_RUNTIME_TOOLS_RUN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/tools/flags.h"

namespace partita::tools {

struct RunOptions {
  bool help = false;
  std::string model;
  std::vector<std::pair<std::string, std::string>>
      inputs;  // name, file or content
  std::string inputs_file;
  std::string output_dir;
  std::optional<uint64_t> random_seed;
  int threads = 0;
  int devices = 0;                // 0: as many as the model was compiled for
  std::optional<double> timeout;  // seconds
  std::optional<int> warmup;
  int repeat = 1;
  bool json = false;
  bool profile = false;
  std::string weights_dir;
  std::string device;      // empty: what the model was compiled for
  bool share_gpu = false;  // all devices stand on GPU 0
};

// `arguments` without the program's name. InvalidArgument says which argument
// is wrong and what was expected.
absl::StatusOr<RunOptions> ParseRunOptions(
    const std::vector<std::string>& arguments);

// Setters of flags that commands share; the options must outlive them.
FlagSetter SetInput(RunOptions& options);    // --input
FlagSetter SetTimeout(RunOptions& options);  // --timeout
// --device; `trains`: of a command that needs results.
FlagSetter SetDevice(RunOptions& options, bool trains);

// Options of devices that contradict each other.
absl::Status CheckDeviceOptions(const RunOptions& options);

// The text of --help.
const char* RunHelp();

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_RUN_OPTIONS_H_
