// The C functions that generate text.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/api/error.h"
#include "runtime/api/partita.h"
#include "runtime/api/read_options.h"
#include "runtime/base/status_macros.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/loaded_model.h"

struct partita_generator {
  std::unique_ptr<partita::generate::LoadedModel> model;
  partita::generate::GenerateReport report;  // of the last call
};

namespace {

using partita::api::CheckGiven;
using partita::api::Guard;
namespace generate = partita::generate;

absl::Status CheckGenerator(const partita_generator* generator) {
  return CheckGiven(generator,
                    "a generator that partita_open_generator opened");
}

absl::Status Open(const char* folder, const partita_options& options,
                  partita_generator** generator) {
  PARTITA_RETURN_IF_ERROR(
      CheckGiven(folder, "the folder of a model that generates text"));
  PARTITA_RETURN_IF_ERROR(
      CheckGiven(generator, "where to store the generator"));
  PARTITA_ASSIGN_OR_RETURN(const partita::session::SessionOptions loading,
                           partita::api::ReadOptions(folder, options));
  if (options.join_job != 0)
    return absl::InvalidArgumentError(
        "expected join_job to be 0, found 1; generating uses the devices of "
        "one process");
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<generate::LoadedModel> model,
                           generate::LoadedModel::Open(loading));
  auto opened = std::make_unique<partita_generator>();
  opened->model = std::move(model);
  *generator = opened.release();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> TokensOf(const partita_tokens& tokens,
                                              const std::string& what) {
  if (tokens.count > 0)
    PARTITA_RETURN_IF_ERROR(
        CheckGiven(tokens.ids, absl::StrCat("tokens of ", what).c_str()));
  return std::vector<int64_t>(tokens.ids, tokens.ids + tokens.count);
}

absl::StatusOr<generate::GenerateOptions> ReadGenerateOptions(
    const partita_generate_options& options) {
  PARTITA_RETURN_IF_ERROR(partita::api::CheckVersion(
      options.abi_version, options.size, sizeof(partita_generate_options),
      "partita_generate_options", "PARTITA_GENERATE_OPTIONS"));
  if (options.max_new_tokens < 0 || options.top_k < 0 ||
      !(options.temperature >= 0) || !(options.repetition_penalty > 0) ||
      !(options.top_p > 0 && options.top_p <= 1))
    return absl::InvalidArgumentError(absl::StrCat(
        "expected max_new_tokens, temperature and top_k of 0 or more, "
        "repetition_penalty above 0 and top_p above 0 and up to 1; found ",
        options.max_new_tokens, ", ", options.temperature, ", ", options.top_k,
        ", ", options.repetition_penalty, " and ", options.top_p));
  generate::GenerateOptions result;
  result.max_new_tokens = options.max_new_tokens;
  result.sampling = {options.temperature, options.top_k, options.top_p,
                     options.repetition_penalty, options.seed};
  PARTITA_ASSIGN_OR_RETURN(result.end, TokensOf(options.end, "the end"));
  if (options.callback != nullptr)
    result.stops = [options](size_t text, const std::vector<int64_t>& tokens) {
      return options.callback(text, {tokens.data(), tokens.size()},
                              options.user) != 0;
    };
  return result;
}

absl::Status Generate(partita_generator* generator,
                      const partita_tokens* prompts, size_t count,
                      const partita_generate_options& options,
                      partita_tokens* texts, partita_generate_times* times) {
  PARTITA_RETURN_IF_ERROR(CheckGenerator(generator));
  if (count == 0) return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(CheckGiven(prompts, "prompts"));
  PARTITA_RETURN_IF_ERROR(CheckGiven(texts, "where to store texts"));
  PARTITA_ASSIGN_OR_RETURN(const generate::GenerateOptions given,
                           ReadGenerateOptions(options));
  std::vector<std::vector<int64_t>> ids(count);
  for (size_t i = 0; i < count; ++i) {
    PARTITA_ASSIGN_OR_RETURN(ids[i],
                             TokensOf(prompts[i], absl::StrCat("prompt ", i)));
  }
  PARTITA_ASSIGN_OR_RETURN(generator->report,
                           generate::Generate(*generator->model, ids, given));
  const generate::GenerateReport& report = generator->report;
  for (size_t i = 0; i < count; ++i)
    texts[i] = {report.tokens[i].data(), report.tokens[i].size()};
  if (times != nullptr)
    *times = {report.first_token_seconds, report.prompt_seconds,
              report.token_seconds};
  return absl::OkStatus();
}

}  // namespace

partita_status partita_open_generator(const char* folder,
                                      const partita_options* options,
                                      partita_generator** generator) {
  const partita_options defaults = PARTITA_OPTIONS;
  return Guard([&] {
    return Open(folder, options != nullptr ? *options : defaults, generator);
  });
}

void partita_close_generator(partita_generator* generator) { delete generator; }

partita_status partita_describe_generator(const partita_generator* generator,
                                          partita_generator_info* info) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckGenerator(generator));
    PARTITA_RETURN_IF_ERROR(CheckGiven(info, "where to store the description"));
    const generate::LoadedModel& model = *generator->model;
    const generate::Description& description = model.description();
    *info = {};
    info->rows = model.rows();
    info->length = model.length();
    info->vocabulary = model.vocabulary();
    info->end = {description.end.data(), description.end.size()};
    if (!description.tokenizer.empty())
      info->tokenizer = description.tokenizer.c_str();
    return absl::OkStatus();
  });
}

partita_status partita_generate(partita_generator* generator,
                                const partita_tokens* prompts, size_t count,
                                const partita_generate_options* options,
                                partita_tokens* texts,
                                partita_generate_times* times) {
  const partita_generate_options defaults = PARTITA_GENERATE_OPTIONS;
  return Guard([&] {
    return Generate(generator, prompts, count,
                    options != nullptr ? *options : defaults, texts, times);
  });
}
