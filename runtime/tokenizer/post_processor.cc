// All kinds put a fixed list of tokens before the text and one after it.
#include "runtime/tokenizer/post_processor.h"

#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/fields.h"

namespace partita::tokenizer {
namespace {

using nlohmann::json;

constexpr char kKnown[] =
    "Sequence, TemplateProcessing, BertProcessing, RobertaProcessing, "
    "ByteLevel";
constexpr char kWhere[] = "post_processor";

// The ids of the special token `name` in a template.
absl::Status AppendIds(const json* special, const std::string& name,
                       std::vector<int64_t>& ids) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat(kWhere, ".special_tokens: expected ids of '", name, "'"));
  };
  if (special == nullptr || !special->is_object()) return wrong();
  const auto token = special->find(name);
  if (token == special->end() || !token->is_object()) return wrong();
  const auto list = token->find("ids");
  if (list == token->end() || !list->is_array()) return wrong();
  for (const json& id : *list) {
    if (!Fields::IsCount(id)) return wrong();
    ids.push_back(id.get<int64_t>());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PostProcessor> PostProcessor::Read(const json* value) {
  PostProcessor processor;
  if (value != nullptr && !value->is_null())
    PARTITA_RETURN_IF_ERROR(processor.Add(*value));
  return processor;
}

absl::Status PostProcessor::Add(const json& value) {
  Fields fields(value, kWhere);
  const std::string type = fields.Text("type", "");
  PARTITA_RETURN_IF_ERROR(fields.Check());
  if (type == "Sequence") {
    for (const json& step : fields.List("processors"))
      PARTITA_RETURN_IF_ERROR(Add(step));
    return fields.Check();
  }
  if (type == "TemplateProcessing") return AddTemplate(value);
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return AddPair(value);
  if (type == "ByteLevel") return absl::OkStatus();  // changes offsets only
  return UnknownType(kWhere, type, kKnown);
}

absl::Status PostProcessor::AddTemplate(const json& value) {
  Fields fields(value, kWhere);
  const json* special = fields.Find("special_tokens");
  std::vector<int64_t> before, after;
  int sequences = 0;
  for (const json& item : fields.List("single")) {
    const bool is_object =
        item.is_object() && item.size() == 1 && item.begin()->is_object();
    if (is_object && item.begin().key() == "Sequence") {
      ++sequences;
      continue;
    }
    if (!is_object || item.begin().key() != "SpecialToken") {
      fields.Wrong("single", "objects Sequence and SpecialToken");
      break;
    }
    Fields token(*item.begin(), "post_processor.single");
    const std::string name = token.Text("id", "");
    PARTITA_RETURN_IF_ERROR(token.Check());
    PARTITA_RETURN_IF_ERROR(
        AppendIds(special, name, sequences == 0 ? before : after));
  }
  if (sequences != 1) fields.Wrong("single", "one Sequence");
  PARTITA_RETURN_IF_ERROR(fields.Check());
  before_.insert(before_.begin(), before.begin(), before.end());
  after_.insert(after_.end(), after.begin(), after.end());
  return absl::OkStatus();
}

absl::Status PostProcessor::AddPair(const json& value) {
  Fields fields(value, kWhere);
  const auto id_of = [&](const char* key) -> int64_t {
    const json* pair = fields.Find(key);
    if (pair != nullptr && pair->is_array() && pair->size() == 2 &&
        Fields::IsCount((*pair)[1]))
      return (*pair)[1].get<int64_t>();
    fields.Wrong(key, "a token and its id");
    return 0;
  };
  const int64_t first = id_of("cls"), last = id_of("sep");
  before_.insert(before_.begin(), first);
  after_.push_back(last);
  return fields.Check();
}

std::vector<int64_t> PostProcessor::Apply(
    const std::vector<int64_t>& tokens) const {
  std::vector<int64_t> result = before_;
  result.insert(result.end(), tokens.begin(), tokens.end());
  result.insert(result.end(), after_.begin(), after_.end());
  return result;
}

}  // namespace partita::tokenizer
