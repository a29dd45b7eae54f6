// The steps in order: added tokens, normalizer, pre-tokenizer, model,
// post-processor.
#include "runtime/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/checked_json.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/added_tokens.h"
#include "runtime/tokenizer/decoder.h"
#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/normalizer.h"
#include "runtime/tokenizer/post_processor.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {
namespace {

using nlohmann::json;

constexpr size_t kMostTextBytes = size_t{64} << 20;
constexpr size_t kMostFileBytes = size_t{512} << 20;

}  // namespace

struct Tokenizer::Parts {
  std::unique_ptr<Normalizer> normalizer;       // null: none
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // null: none
  std::unique_ptr<Model> model;
  PostProcessor post_processor;
  std::unique_ptr<Decoder> decoder;  // null: tokens with spaces between them
  AddedTokens added;

  absl::Status Read(const json& file) {
    const Fields fields(file, "file");
    PARTITA_RETURN_IF_ERROR(fields.Check());
    PARTITA_ASSIGN_OR_RETURN(normalizer,
                             ReadNormalizer(fields.Find("normalizer")));
    PARTITA_ASSIGN_OR_RETURN(pre_tokenizer,
                             ReadPreTokenizer(fields.Find("pre_tokenizer")));
    PARTITA_ASSIGN_OR_RETURN(model, ReadModel(fields.Find("model")));
    PARTITA_ASSIGN_OR_RETURN(
        post_processor, PostProcessor::Read(fields.Find("post_processor")));
    PARTITA_ASSIGN_OR_RETURN(decoder, ReadDecoder(fields.Find("decoder")));
    PARTITA_ASSIGN_OR_RETURN(
        added,
        AddedTokens::Read(fields.Find("added_tokens"), normalizer.get()));
    return absl::OkStatus();
  }

  // Appends the tokens of text without added tokens.
  absl::Status AppendModelTokens(Piece whole,
                                 std::vector<int64_t>& tokens) const {
    std::vector<Piece> pieces = {std::move(whole)};
    if (pre_tokenizer) {
      PARTITA_ASSIGN_OR_RETURN(pieces, pre_tokenizer->Split(std::move(pieces)));
    }
    for (const Piece& piece : pieces)
      PARTITA_RETURN_IF_ERROR(model->Tokenize(piece.text, tokens));
    return absl::OkStatus();
  }

  // Appends the tokens of text without the added tokens that are found before
  // normalizing. `first`: it begins the whole text.
  absl::Status AppendTokens(const std::string& text, bool first,
                            std::vector<int64_t>& tokens) const {
    std::string normalized = text;
    if (normalizer) {
      PARTITA_ASSIGN_OR_RETURN(normalized, normalizer->Apply(text));
    }
    for (const TextPart& part : added.normalized().Find(normalized)) {
      if (part.token >= 0)
        tokens.push_back(part.token);
      else
        PARTITA_RETURN_IF_ERROR(
            AppendModelTokens({part.text, first && part.begin == 0}, tokens));
    }
    return absl::OkStatus();
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&& other) noexcept = default;
Tokenizer::~Tokenizer() = default;

absl::StatusOr<Tokenizer> Tokenizer::Open(const std::string& path) {
  PARTITA_ASSIGN_OR_RETURN(const base::MappedFile file,
                           base::MappedFile::Open(path));
  if (file.bytes().size() > kMostFileBytes)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected at most ", kMostFileBytes,
                     " bytes, found ", file.bytes().size()));
  return Parse(file.bytes(), path);
}

absl::StatusOr<Tokenizer> Tokenizer::Parse(std::string_view text,
                                           const std::string& path) {
  base::JsonError error;
  const json file = base::ParseJson(text, error);
  auto parts = std::make_unique<Parts>();
  const absl::Status status = file.is_discarded()
                                  ? absl::InvalidArgumentError(absl::StrCat(
                                        "expected JSON, found ", error.found))
                                  : parts->Read(file);
  if (!status.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", status.message(),
                     "; expected a tokenizer.json of Hugging Face's "
                     "tokenizers"));
  return Tokenizer(std::move(parts));
}

absl::StatusOr<std::vector<int64_t>> Tokenizer::Encode(
    std::string_view text, bool adds_special) const {
  if (text.size() > kMostTextBytes)
    return absl::InvalidArgumentError(
        absl::StrCat("expected a text of at most ", kMostTextBytes,
                     " bytes, found ", text.size()));
  std::vector<int64_t> tokens;
  for (const TextPart& part : parts_->added.plain().Find(ToValidUtf8(text))) {
    if (part.token >= 0)
      tokens.push_back(part.token);
    else
      PARTITA_RETURN_IF_ERROR(
          parts_->AppendTokens(part.text, part.begin == 0, tokens));
  }
  return adds_special ? parts_->post_processor.Apply(tokens) : tokens;
}

absl::StatusOr<std::string> Tokenizer::Decode(
    const std::vector<int64_t>& tokens, bool skips_special) const {
  std::vector<std::string> texts;
  for (const int64_t token : tokens) {
    const AddedToken* added = parts_->added.Find(token);
    if (added != nullptr) {
      if (!added->special || !skips_special) texts.push_back(added->content);
    } else if (const std::string* text =
                   parts_->model->vocabulary().TextOf(token)) {
      texts.push_back(*text);
    }
  }
  if (parts_->decoder) {
    PARTITA_ASSIGN_OR_RETURN(texts, parts_->decoder->Apply(std::move(texts)));
  }
  std::string result;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0 && !parts_->decoder) result += ' ';
    result += texts[i];
  }
  return result;
}

int64_t Tokenizer::size() const {
  return std::max(parts_->model->vocabulary().size(), parts_->added.end());
}

}  // namespace partita::tokenizer
