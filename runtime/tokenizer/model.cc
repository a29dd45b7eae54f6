// Vocabularies, and the choice of a model.
#include "runtime/tokenizer/model.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"

namespace partita::tokenizer {
namespace {

// Whole pieces are tokens.
class WordLevel : public Model {
 public:
  absl::Status Read(Fields& fields) {
    ReadVocabulary(fields);
    unknown_ = vocabulary_.IdOf(fields.Text("unk_token", "<unk>"));
    return fields.Check();
  }
  absl::Status Tokenize(const std::string& piece,
                        std::vector<int64_t>& tokens) const override {
    if (const auto id = vocabulary_.IdOf(piece))
      tokens.push_back(*id);
    else if (unknown_)
      tokens.push_back(*unknown_);
    return absl::OkStatus();
  }

 private:
  std::optional<int64_t> unknown_;
};

}  // namespace

bool Vocabulary::Add(const std::string& text, int64_t id) {
  if (id >= size()) texts_.resize(static_cast<size_t>(id) + 1);
  std::optional<std::string>& known = texts_[static_cast<size_t>(id)];
  if (known && *known != text) return false;
  known = text;
  ids_[text] = id;
  return true;
}

std::optional<int64_t> Vocabulary::IdOf(const std::string& text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::TextOf(int64_t id) const {
  if (id < 0 || id >= size() || !texts_[static_cast<size_t>(id)])
    return nullptr;
  return &*texts_[static_cast<size_t>(id)];
}

void Model::ReadVocabulary(Fields& fields) {
  const nlohmann::json* vocabulary = fields.Find("vocab");
  if (vocabulary == nullptr || !vocabulary->is_object())
    return fields.Wrong("vocab", "an object of texts and ids");
  for (const auto& [text, id] : vocabulary->items()) {
    if (!Fields::IsCount(id))
      return fields.Wrong("vocab",
                          absl::StrCat("ids from 0 to ", kMostTokens - 1));
    if (!vocabulary_.Add(text, id.get<int64_t>()))
      return fields.Wrong(
          "vocab",
          absl::StrCat("one text per id, found two for ", id.get<int64_t>()));
  }
}

std::vector<int64_t> Model::ByteTokens(const std::string& text) const {
  std::vector<int64_t> tokens;
  for (const char byte : text) {
    const auto id = vocabulary_.IdOf(
        absl::StrFormat("<0x%02X>", static_cast<unsigned char>(byte)));
    if (!id) return {};
    tokens.push_back(*id);
  }
  return tokens;
}

absl::StatusOr<std::unique_ptr<Model>> ReadModel(const nlohmann::json* value) {
  static const nlohmann::json kNone;
  Fields fields(value == nullptr ? kNone : *value, "model");
  std::string type = fields.Text("type", "");
  // Old files have no type.
  if (type.empty() && fields.Find("merges") != nullptr) type = "BPE";
  PARTITA_RETURN_IF_ERROR(fields.Check());
  if (type == "BPE") return ReadBpe(fields);
  if (type == "WordPiece") return ReadWordPiece(fields);
  if (type == "Unigram") return ReadUnigram(fields);
  if (type != "WordLevel")
    return UnknownType("model", type, "BPE, WordPiece, Unigram, WordLevel");
  auto model = std::make_unique<WordLevel>();
  PARTITA_RETURN_IF_ERROR(model->Read(fields));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace partita::tokenizer
