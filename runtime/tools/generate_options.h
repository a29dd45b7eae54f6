// The command line of partita-run generate.
#ifndef PARTITA_RUNTIME_TOOLS_GENERATE_OPTIONS_H_
#define PARTITA_RUNTIME_TOOLS_GENERATE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/generate/generator.h"
#include "runtime/tools/run_options.h"

namespace partita::tools {

struct GenerateCommandOptions {
  RunOptions run;
  // A prompt is text or token ids.
  struct Prompt {
    std::string text;
    std::vector<int64_t> ids;
    bool is_text = false;
  };
  std::vector<Prompt> prompts;  // in the order of the command line
  generate::GenerateOptions generate;
  std::vector<std::string> stop;  // strings
  bool ignore_end = false;
  bool dry_run = false;  // do not open the model; there may be no prompts
};

// `arguments` exclude "generate". Reads files of prompts. InvalidArgument says
// which argument is wrong and what was expected; other errors are of files.
absl::StatusOr<GenerateCommandOptions> ParseGenerateOptions(
    const std::vector<std::string>& arguments);

// The text of --help.
std::string GenerateHelp();

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_GENERATE_OPTIONS_H_
