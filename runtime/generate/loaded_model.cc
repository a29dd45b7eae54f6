// Opens the programs of a folder, and fills their inputs.
#include "runtime/generate/loaded_model.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/checked_json.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/session/open_ranks.h"

namespace partita::generate {
namespace {

using nlohmann::json;

// Reads fields of generation.json; notes the first that is wrong.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}

  int64_t Count(const char* key, int64_t least) {
    const auto found = object_.find(key);
    if (found != object_.end() && found->is_number_integer() &&
        found->get<int64_t>() >= least)
      return found->get<int64_t>();
    Wrong(key, absl::StrCat("a number of at least ", least));
    return least;
  }
  std::string Text(const char* key) {
    const auto found = object_.find(key);
    if (found != object_.end() && found->is_string())
      return found->get<std::string>();
    Wrong(key, "a file's name");
    return "";
  }
  const json& List(const char* key) {
    static const json kNone = json::array();
    const auto found = object_.find(key);
    if (found != object_.end() && found->is_array()) return *found;
    Wrong(key, "a list");
    return kNone;
  }
  bool Has(const char* key) const { return object_.contains(key); }
  void Wrong(const std::string& key, const std::string& expected) {
    if (wrong_.empty())
      wrong_ = absl::StrCat("'", key, "': expected ", expected);
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const json& object_;
  std::string wrong_;
};

}  // namespace

absl::StatusOr<Description> ReadDescription(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/generation.json");
  const absl::StatusOr<base::MappedFile> file = base::MappedFile::Open(path);
  if (!file.ok())
    return absl::Status(
        file.status().code(),
        absl::StrCat(file.status().message(),
                     "; expected a folder that partita generate -o wrote"));
  base::JsonError error;
  const json object = base::ParseJson(file->bytes(), error);
  const auto wrong = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", what, "; compile the model again"));
  };
  if (!object.is_object())
    return wrong(absl::StrCat("expected a JSON object, found ",
                              error.found.empty() ? "another" : error.found));
  Fields fields(object);
  const auto in_folder = [&](const std::string& name) {
    if (name.find('/') != std::string::npos)
      fields.Wrong("file", "names of files in the folder");
    return absl::StrCat(folder, "/", name);
  };
  Description description;
  description.rows = fields.Count("rows", 1);
  description.length = fields.Count("length", 1);
  description.tokens = in_folder(fields.Text("tokens"));
  for (const json& prompts : fields.List("prompts")) {
    Fields entry(prompts);
    if (!prompts.is_object()) return wrong("'prompts': expected objects");
    description.prompts.push_back(
        {in_folder(entry.Text("file")), entry.Count("length", 1)});
    if (!entry.wrong().empty()) return wrong(entry.wrong());
  }
  for (const json& token : fields.List("end")) {
    if (!token.is_number_integer()) return wrong("'end': expected tokens");
    description.end.push_back(token.get<int64_t>());
  }
  if (fields.Has("start")) description.start = fields.Count("start", 0);
  if (fields.Has("tokenizer"))
    description.tokenizer = in_folder(fields.Text("tokenizer"));
  if (description.prompts.empty()) fields.Wrong("prompts", "a program");
  if (!fields.wrong().empty()) return wrong(fields.wrong());
  std::sort(description.prompts.begin(), description.prompts.end(),
            [](const auto& a, const auto& b) { return a.length < b.length; });
  return description;
}

absl::Status LoadedModel::Program::Bind() {
  for (const executor::TensorSpec& spec : ranks->inputs()) {
    if (spec.dtype != base::DType::kI64)
      return absl::InvalidArgumentError(
          absl::StrCat("input '", spec.name, "': expected i64, found ",
                       base::TypeName(spec.dtype, spec.shape)));
    inputs.emplace_back(static_cast<size_t>(spec.bytes / 8), 0);
  }
  if (ranks->outputs().size() != 1 ||
      ranks->outputs()[0].dtype != base::DType::kF32)
    return absl::InvalidArgumentError(
        "expected one output of f32, the scores of tokens; found others");
  const size_t bytes =
      (static_cast<size_t>(ranks->outputs()[0].bytes) + 63) / 64 * 64;
  memory = {
      static_cast<char*>(std::aligned_alloc(64, std::max<size_t>(64, bytes))),
      std::free};
  return memory ? absl::OkStatus()
                : absl::ResourceExhaustedError(
                      absl::StrCat("cannot allocate ", bytes, " bytes"));
}

std::vector<int64_t>* LoadedModel::Program::Input(const std::string& name) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (ranks->inputs()[i].name == name) return &inputs[i];
  return nullptr;
}

absl::StatusOr<const float*> LoadedModel::Program::Run() {
  std::vector<executor::ConstTensor> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const executor::TensorSpec& spec = ranks->inputs()[i];
    given.push_back({spec.dtype, spec.shape, inputs[i].data()});
  }
  const executor::TensorSpec& output = ranks->outputs()[0];
  PARTITA_RETURN_IF_ERROR(
      ranks->Run(given, {{output.dtype, output.shape, memory.get()}}));
  return reinterpret_cast<const float*>(memory.get());
}

absl::StatusOr<LoadedModel::Program> LoadedModel::Load(
    const std::string& file, const executor::RankGroup* states) const {
  session::SessionOptions options = options_;
  options.model = file;
  Program program;
  PARTITA_ASSIGN_OR_RETURN(program.ranks,
                           session::OpenAllRanks(options, states));
  const absl::Status bound = program.Bind();
  if (!bound.ok())
    return absl::Status(bound.code(),
                        absl::StrCat(file, ": ", bound.message()));
  return program;
}

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::Open(
    const session::SessionOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(Description description,
                           ReadDescription(options.model));
  std::unique_ptr<LoadedModel> model(
      new LoadedModel(options, std::move(description)));
  PARTITA_ASSIGN_OR_RETURN(model->tokens_,
                           model->Load(model->description_.tokens, nullptr));
  Program& tokens = model->tokens_;
  const size_t rows = static_cast<size_t>(model->rows());
  const std::vector<int64_t>*ids = tokens.Input("input_ids"),
        *positions = tokens.Input("positions");
  const executor::TensorSpec& scores = tokens.ranks->outputs()[0];
  if (ids == nullptr || positions == nullptr || ids->size() != rows ||
      positions->size() != rows || scores.shape.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(model->description_.tokens,
                     ": expected inputs input_ids and positions "
                     "of ",
                     rows, " rows; compile the model again"));
  model->vocabulary_ = scores.shape.back();
  if (scores.bytes != 4 * model->rows() * model->vocabulary_)
    return absl::InvalidArgumentError(absl::StrCat(
        model->description_.tokens, ": expected scores of ", rows,
        " rows, found ", base::TypeName(scores.dtype, scores.shape),
        "; compile the model again"));
  PARTITA_RETURN_IF_ERROR(model->CheckDescription());
  model->source_lengths_.resize(rows, 1);
  return model;
}

absl::Status LoadedModel::CheckDescription() const {
  const auto wrong = [&](const char* field, int64_t found,
                         const std::string& expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.model, "/generation.json: '", field, "': expected ", expected,
        ", found ", found, "; compile the model again"));
  };
  if (start() && *start() >= vocabulary_)
    return wrong("start", *start(),
                 absl::StrCat("a token below ", vocabulary_));
  // A cache is [rows, heads, length, size].
  for (const executor::ParameterSpec& state : tokens_.ranks->parameters()) {
    if (state.kind != program::ParameterKind::state ||
        state.whole.shape.size() != 4)
      continue;
    if (state.whole.shape[2] != length())
      return wrong("length", length(),
                   absl::StrCat(state.whole.shape[2], ", as the cache '",
                                state.whole.name, "' has"));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> LoadedModel::ProgramFor(int64_t tokens) {
  size_t index = 0;
  while (index + 1 < prompts_.size() &&
         description_.prompts[index].length < tokens)
    ++index;
  const Description::Prompts& prompts = description_.prompts[index];
  if (prompts.length < tokens)
    return absl::InvalidArgumentError(
        absl::StrCat("expected a prompt of at most ", prompts.length,
                     " tokens, found ", tokens));
  Program& program = prompts_[index];
  if (program.ranks != nullptr) return index;
  PARTITA_ASSIGN_OR_RETURN(program, Load(prompts.file, tokens_.ranks.get()));
  for (const auto& [name, size] :
       {std::pair<const char*, int64_t>{"input_ids", prompts.length},
        {"slots", 1},
        {"lengths", 1}}) {
    const std::vector<int64_t>* input = program.Input(name);
    if (input == nullptr || static_cast<int64_t>(input->size()) != size)
      return absl::InvalidArgumentError(
          absl::StrCat(prompts.file, ": expected an input ", name, " of ", size,
                       " numbers; compile the model again"));
  }
  const executor::TensorSpec& scores = program.ranks->outputs()[0];
  if (!start() && scores.bytes != 4 * vocabulary_)
    return absl::InvalidArgumentError(absl::StrCat(
        prompts.file, ": expected scores of ", vocabulary_, " tokens, found ",
        base::TypeName(scores.dtype, scores.shape),
        "; compile the model again"));
  return index;
}

absl::Status LoadedModel::Prepare(int64_t tokens) {
  return ProgramFor(tokens).status();
}

absl::StatusOr<const float*> LoadedModel::ReadPrompt(
    int64_t row, const std::vector<int64_t>& prompt) {
  const int64_t size = static_cast<int64_t>(prompt.size());
  PARTITA_ASSIGN_OR_RETURN(const size_t index, ProgramFor(size));
  Program& program = prompts_[index];
  std::vector<int64_t>& ids = *program.Input("input_ids");
  std::fill(ids.begin(), ids.end(), 0);
  std::copy(prompt.begin(), prompt.end(), ids.begin());
  *program.Input("slots") = {row};
  *program.Input("lengths") = {size};
  source_lengths_[static_cast<size_t>(row)] = size;
  return program.Run();
}

absl::StatusOr<const float*> LoadedModel::AddTokens(
    const std::vector<int64_t>& tokens, const std::vector<int64_t>& positions) {
  *tokens_.Input("input_ids") = tokens;
  *tokens_.Input("positions") = positions;
  if (std::vector<int64_t>* lengths = tokens_.Input("source_lengths"))
    *lengths = source_lengths_;
  return tokens_.Run();
}

}  // namespace partita::generate
