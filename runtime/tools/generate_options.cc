// The flags of partita-run generate.
#include "runtime/tools/generate_options.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"

namespace partita::tools {
namespace {

using Prompt = GenerateCommandOptions::Prompt;

constexpr double kMost = std::numeric_limits<double>::max();
constexpr int64_t kMostTokens = int64_t{1} << 31;

absl::StatusOr<std::vector<int64_t>> ParseIds(const std::string& text) {
  std::vector<int64_t> ids;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto id = ParseCount(text.substr(begin, end - begin), 0, kMostTokens);
    if (!id.ok())
      return absl::InvalidArgumentError(absl::StrCat(
          "expected token ids with commas between them, as 1,2,3; found '",
          text, "'"));
    ids.push_back(*id);
    begin = end + 1;
  }
  return ids;
}

// Each line is a prompt. Blank lines may only be at the end.
absl::Status ReadPrompts(const std::string& path,
                         std::vector<Prompt>& prompts) {
  PARTITA_ASSIGN_OR_RETURN(const base::MappedFile file,
                           base::MappedFile::Open(path));
  std::string_view rest = file.bytes();
  int64_t number = 0, blank = 0;  // of lines; blank: the first one, or 0
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && line.back() == '\r') line.pop_back();
    ++number;
    if (line.empty()) {
      blank = blank > 0 ? blank : number;
      continue;
    }
    if (blank > 0)
      return absl::InvalidArgumentError(absl::StrCat(
          path, ":", blank,
          ": expected a prompt on each line, found a blank line; remove it"));
    prompts.push_back({std::move(line), {}, true});
  }
  if (number == 0 || blank == 1)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected a prompt on each line, found no prompt"));
  return absl::OkStatus();
}

FlagSetter SetNumber(double& target, double low, double high,
                     std::string expected) {
  return [&target, low, high,
          expected = std::move(expected)](const std::string& value) {
    const auto number = ParseNumber(value, low, high, expected);
    if (number.ok()) target = *number;
    return number.status();
  };
}

}  // namespace

absl::StatusOr<GenerateCommandOptions> ParseGenerateOptions(
    const std::vector<std::string>& arguments) {
  GenerateCommandOptions options;
  generate::SamplingOptions& sampling = options.generate.sampling;
  int64_t seed = 0;
  double temperature = -1;
  std::vector<std::string> files;
  Flags flags;
  flags.values = {
      {"--prompt",
       [&](const std::string& text) {
         options.prompts.push_back({text, {}, true});
         return absl::OkStatus();
       }},
      {"--ids",
       [&](const std::string& text) {
         const auto ids = ParseIds(text);
         if (ids.ok()) options.prompts.push_back({"", *ids, false});
         return ids.status();
       }},
      {"--prompts",
       [&](const std::string& path) {
         return ReadPrompts(path, options.prompts);
       }},
      {"--stop",
       [&](const std::string& text) {
         if (text.empty())
           return absl::InvalidArgumentError("expected a text, found none");
         options.stop.push_back(text);
         return absl::OkStatus();
       }},
      {"--max-new-tokens",
       SetCount(options.generate.max_new_tokens, 0, kMostTokens)},
      {"--temperature",
       SetNumber(temperature, 0, kMost, "a number of at least 0")},
      {"--top-k", SetCount(sampling.top_k, 1)},
      {"--top-p",
       SetNumber(sampling.top_p, 1e-30, 1, "a number above 0 and up to 1")},
      {"--repetition-penalty", SetNumber(sampling.repetition_penalty, 1e-30,
                                         kMost, "a positive number")},
      {"--seed", SetCount(seed, 0)},
      {"--threads", SetCount(options.run.threads, 1, session::kMostThreads)},
      {"--timeout", SetTimeout(options.run)},
      {"--weights-dir", SetString(options.run.weights_dir)},
      {"--device", SetDevice(options.run, /*trains=*/false)}};
  flags.switches = {{"--json", &options.run.json},
                    {"--ignore-end", &options.ignore_end},
                    {"--dry-run", &options.dry_run},
                    {"--help", &options.run.help}};
  PARTITA_RETURN_IF_ERROR(ParseFlags(arguments, flags, options.run.model));
  if (options.run.help) return options;
  if (options.run.model.empty())
    return absl::InvalidArgumentError(
        "expected a folder that partita generate -o wrote, found none");
  if (options.prompts.empty() && !options.dry_run)
    return absl::InvalidArgumentError(
        "expected a prompt (--prompt TEXT, --prompts FILE or --ids 1,2,3), "
        "found none");
  // Any option of drawing draws.
  const bool draws = sampling.top_k > 0 || sampling.top_p < 1;
  if (draws && temperature == 0)
    return absl::InvalidArgumentError(
        "expected a --temperature above 0 with --top-k or --top-p, found 0, "
        "which takes the best token");
  sampling.temperature = temperature >= 0 ? temperature : draws ? 1 : 0;
  sampling.seed = static_cast<uint64_t>(seed);
  return options;
}

std::string GenerateHelp() {
  return absl::StrCat(
      R"(Usage: partita-run generate FOLDER [options]

Generates text with a model that partita generate -o compiled.

  partita-run generate gpt2.generate --prompt "The sea" --max-new-tokens 40 --temperature 0.8 --top-k 50

Prompts
  --prompt TEXT            Go on from this text, which needs the model's tokenizer.json; may be repeated
  --prompts FILE           Go on from each line of this file; blank lines may only be at its end
  --ids 1,2,3              Go on from these token ids; may be repeated
Texts
  --max-new-tokens N       Add at most N tokens to each prompt; default 20
  --stop TEXT              End a text before this string; may be repeated
  --ignore-end             Go on after a token that ends the text
Choice of tokens
  --temperature T          Divide the scores by T and draw at random; 0: take the best token. Default: 0, or 1 with --top-k
                           or --top-p
  --top-k K                Draw among the best K tokens
  --top-p P                Draw among the best tokens whose probabilities add up to P
  --repetition-penalty R   Divide the positive scores of tokens that occurred by R, and multiply the negative ones
  --seed N                 Seed of the choices; default 0. A text depends on it and on its own place in the list alone
Execution
  --json                   Print one JSON object: the new tokens of each prompt, and times
  --dry-run                Check the options and read files of prompts, but do not open FOLDER; prompts may be missing
  --threads N              Use N threads over all devices of this process; default: one per processor
  --timeout SECONDS        Fail if a device makes no progress for this long; default 60
  --weights-dir DIR        Resolve relative weight paths in DIR; default: the model's folder
)",
      DeviceHelp(/*trains=*/false),
      R"(  --help                   Print this text

Exit code: 0 success, 1 invalid files or inputs, 2 wrong command line, 70 a bug in Partita.
)");
}

}  // namespace partita::tools
