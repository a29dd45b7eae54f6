// WordPiece (Schuster and Nakajima, 2012): the longest token at each place.
#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {
namespace {

class WordPiece : public Model {
 public:
  absl::Status Read(Fields& fields) {
    ReadVocabulary(fields);
    prefix_ = fields.Text("continuing_subword_prefix", "##");
    longest_ = fields.Count("max_input_chars_per_word", 100);
    const auto unknown = vocabulary_.IdOf(fields.Text("unk_token", "[UNK]"));
    if (!unknown) fields.Wrong("unk_token", "a token of the vocabulary");
    unknown_ = unknown.value_or(0);
    return fields.Check();
  }

  absl::Status Tokenize(const std::string& piece,
                        std::vector<int64_t>& tokens) const override {
    const size_t first = tokens.size();
    bool is_known = static_cast<int64_t>(CountChars(piece)) <= longest_;
    for (size_t begin = 0; is_known && begin < piece.size();) {
      size_t end = piece.size();
      std::optional<int64_t> found;
      while (begin < end && !found) {
        found = vocabulary_.IdOf((begin > 0 ? prefix_ : "") +
                                 piece.substr(begin, end - begin));
        if (found) break;
        // To the beginning of the character before.
        do --end;
        while (end > begin &&
               (static_cast<unsigned char>(piece[end]) & 0xC0) == 0x80);
      }
      is_known = found.has_value();
      if (found) tokens.push_back(*found);
      begin = end;
    }
    if (is_known) return absl::OkStatus();
    tokens.resize(first);
    tokens.push_back(unknown_);
    return absl::OkStatus();
  }

 private:
  std::string prefix_;
  int64_t longest_ = 0, unknown_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> ReadWordPiece(Fields& fields) {
  auto model = std::make_unique<WordPiece>();
  PARTITA_RETURN_IF_ERROR(model->Read(fields));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace partita::tokenizer
