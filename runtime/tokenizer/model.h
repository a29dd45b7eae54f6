// The models of tokenizer.json: a piece of text to tokens.
#ifndef PARTITA_RUNTIME_TOKENIZER_MODEL_H_
#define PARTITA_RUNTIME_TOKENIZER_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/tokenizer/fields.h"

namespace partita::tokenizer {

// Texts of tokens and their ids.
class Vocabulary {
 public:
  // False if the id has another text already.
  bool Add(const std::string& text, int64_t id);
  std::optional<int64_t> IdOf(const std::string& text) const;
  // Null if no token has this id.
  const std::string* TextOf(int64_t id) const;
  int64_t size() const { return static_cast<int64_t>(texts_.size()); }

 private:
  std::unordered_map<std::string, int64_t> ids_;
  std::vector<std::optional<std::string>> texts_;  // by id
};

class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of a piece.
  virtual absl::Status Tokenize(const std::string& piece,
                                std::vector<int64_t>& tokens) const = 0;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  // Reads an object of texts and ids. `fields` notes what is wrong.
  void ReadVocabulary(Fields& fields);
  // The tokens <0x00> to <0xFF> of the bytes; empty unless all of them exist.
  std::vector<int64_t> ByteTokens(const std::string& text) const;

  Vocabulary vocabulary_;
};

// "BPE", "WordPiece", "Unigram" or "WordLevel". InvalidArgument names what is
// wrong.
absl::StatusOr<std::unique_ptr<Model>> ReadModel(const nlohmann::json* value);

absl::StatusOr<std::unique_ptr<Model>> ReadBpe(Fields& fields);
absl::StatusOr<std::unique_ptr<Model>> ReadWordPiece(Fields& fields);
absl::StatusOr<std::unique_ptr<Model>> ReadUnigram(Fields& fields);

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_MODEL_H_
