// Loads a model with a cache, generates, and prints texts or tokens.
#include "runtime/tools/generate_command.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"
#include "runtime/comm/launch.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/loaded_model.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tools/generate_options.h"
#include "runtime/tools/run_ranks.h"

namespace partita::tools {
namespace {

using Clock = std::chrono::steady_clock;
using generate::GenerateReport;
using nlohmann::json;

double Rate(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// Tokens that AddTokens gave; the first token of a text comes from its prompt.
int64_t SteppedTokens(const generate::CachedModel& model,
                      const GenerateReport& report) {
  if (model.start()) return report.new_tokens;
  int64_t texts = 0;
  for (const auto& tokens : report.tokens) texts += tokens.empty() ? 0 : 1;
  return report.new_tokens - texts;
}

// Texts of prompts and of what was generated.
class Texts {
 public:
  // Reads the tokenizer if a prompt or a stop word is text, or if there is one.
  absl::Status Open(const GenerateCommandOptions& options,
                    const generate::LoadedModel& model) {
    const std::string& path = model.description().tokenizer;
    bool needed = !options.stop.empty();
    for (const auto& prompt : options.prompts) needed |= prompt.is_text;
    if (path.empty() && !needed) return absl::OkStatus();
    if (path.empty())
      return absl::InvalidArgumentError(absl::StrCat(
          options.run.model,
          ": expected the model's tokenizer.json for texts, found none; give "
          "token ids with --ids, or compile a model folder that has the file"));
    PARTITA_ASSIGN_OR_RETURN(tokenizer::Tokenizer opened,
                             tokenizer::Tokenizer::Open(path));
    if (needed && opened.size() > model.vocabulary())
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": expected at most ", model.vocabulary(),
                       " tokens, as the model has, found ", opened.size(),
                       "; it belongs to another model"));
    tokenizer_.emplace(std::move(opened));
    return absl::OkStatus();
  }
  bool exist() const { return tokenizer_.has_value(); }

  absl::StatusOr<std::vector<std::vector<int64_t>>> Prompts(
      const GenerateCommandOptions& options) const {
    std::vector<std::vector<int64_t>> prompts;
    for (const auto& prompt : options.prompts) {
      prompts.push_back(prompt.ids);
      if (!prompt.is_text) continue;
      PARTITA_ASSIGN_OR_RETURN(prompts.back(), tokenizer_->Encode(prompt.text));
    }
    return prompts;
  }

  // The text that new tokens add to a prompt.
  absl::StatusOr<std::string> Added(const std::vector<int64_t>& prompt,
                                    const std::vector<int64_t>& tokens) const {
    std::vector<int64_t> all = prompt;
    all.insert(all.end(), tokens.begin(), tokens.end());
    PARTITA_ASSIGN_OR_RETURN(const std::string before,
                             tokenizer_->Decode(prompt));
    PARTITA_ASSIGN_OR_RETURN(std::string text, tokenizer_->Decode(all));
    if (text.compare(0, before.size(), before) == 0)
      return text.substr(before.size());
    return tokenizer_->Decode(tokens);
  }

 private:
  std::optional<tokenizer::Tokenizer> tokenizer_;
};

// The first place of a stop word; npos if there is none.
size_t FindStop(const std::string& text, const std::vector<std::string>& stop) {
  size_t first = std::string::npos;
  for (const std::string& word : stop) first = std::min(first, text.find(word));
  return first;
}

absl::StatusOr<std::vector<std::string>> TextsOf(
    const Texts& texts, const GenerateCommandOptions& options,
    const generate::CachedModel& model,
    const std::vector<std::vector<int64_t>>& prompts,
    const GenerateReport& report) {
  std::vector<std::string> result;
  for (size_t i = 0; texts.exist() && i < prompts.size(); ++i) {
    PARTITA_ASSIGN_OR_RETURN(
        const std::string text,
        texts.Added(model.start() ? std::vector<int64_t>() : prompts[i],
                    report.tokens[i]));
    result.push_back(text.substr(0, FindStop(text, options.stop)));
  }
  return result;
}

void Print(const GenerateReport& report, const std::vector<std::string>& texts,
           std::ostream& out) {
  for (size_t i = 0; i < report.tokens.size(); ++i) {
    if (!texts.empty()) {
      out << texts[i] << "\n";
      continue;
    }
    const std::vector<int64_t>& tokens = report.tokens[i];
    for (size_t j = 0; j < tokens.size(); ++j)
      out << (j > 0 ? "," : "") << tokens[j];
    out << "\n";
  }
}

// Prints to `error`, so that standard output has the texts alone.
void PrintSpeed(const GenerateReport& report, double load, double rate,
                std::ostream& error) {
  error << absl::StrFormat(
      "loaded in %.2f s; first token after %.1f ms; %d prompt tokens in %.1f "
      "ms; %d new tokens, %.1f per second\n",
      load, 1e3 * report.first_token_seconds, report.prompt_tokens,
      1e3 * report.prompt_seconds, report.new_tokens, rate);
}

json ToJson(const GenerateReport& report, const std::vector<std::string>& texts,
            double load, double rate) {
  json facts = {{"tokens", report.tokens},
                {"load_seconds", load},
                {"first_token_seconds", report.first_token_seconds},
                {"prompt_tokens", report.prompt_tokens},
                {"prompt_seconds", report.prompt_seconds},
                {"new_tokens", report.new_tokens},
                {"token_seconds", report.token_seconds},
                {"tokens_per_second", rate}};
  if (!texts.empty()) facts["texts"] = texts;
  return facts;
}

absl::Status RunGenerate(const GenerateCommandOptions& options,
                         std::ostream& out, std::ostream& error) {
  const Clock::time_point begin = Clock::now();
  PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<generate::LoadedModel> model,
                           generate::LoadedModel::Open(options.run));
  Texts texts;
  PARTITA_RETURN_IF_ERROR(texts.Open(options, *model));
  generate::GenerateOptions generate = options.generate;
  if (!options.ignore_end) generate.end = model->description().end;
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> prompts,
                           texts.Prompts(options));
  if (!options.stop.empty())
    generate.stops = [&](size_t text, const std::vector<int64_t>& tokens) {
      const auto added = texts.Added(
          model->start() ? std::vector<int64_t>() : prompts[text], tokens);
      return added.ok() && FindStop(*added, options.stop) != std::string::npos;
    };
  PARTITA_RETURN_IF_ERROR(generate::CheckPrompts(*model, prompts, generate));
  for (const std::vector<int64_t>& prompt : prompts)
    PARTITA_RETURN_IF_ERROR(
        model->Prepare(static_cast<int64_t>(prompt.size())));
  const double load =
      std::chrono::duration<double>(Clock::now() - begin).count();
  PARTITA_ASSIGN_OR_RETURN(const GenerateReport report,
                           generate::Generate(*model, prompts, generate));
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::string> added,
                           TextsOf(texts, options, *model, prompts, report));
  const double rate = Rate(SteppedTokens(*model, report), report.token_seconds);
  if (options.run.json)
    out << ToJson(report, added, load, rate)
               .dump(-1, ' ', false, json::error_handler_t::replace)
        << "\n";
  else
    Print(report, added, out);
  PARTITA_RETURN_IF_ERROR(Flush(out));
  if (!options.run.json) PrintSpeed(report, load, rate, error);
  return absl::OkStatus();
}

}  // namespace

int GenerateCommand(const std::vector<std::string>& arguments,
                    std::ostream& out, std::ostream& error) {
  const absl::StatusOr<GenerateCommandOptions> options =
      ParseGenerateOptions(arguments);
  if (!options.ok()) {
    error << "partita-run: " << options.status().message()
          << "\nTry partita-run generate --help.\n";
    return 2;
  }
  if (options->run.help) {
    out << GenerateHelp();
    return Tell(Flush(out), error);
  }
  if (options->dry_run) return 0;
  const std::optional<comm::Launch> launch = comm::DetectLaunch();
  if (launch && launch->size > 1)
    return Tell(absl::FailedPreconditionError(absl::StrCat(
                    "expected one process, with a thread per device; found ",
                    launch->size, " processes of ", launch->launcher)),
                error);
  return Tell(RunGenerate(*options, out, error), error);
}

}  // namespace partita::tools
