// Tokens that are found in the text before the model sees it.
#ifndef PARTITA_RUNTIME_TOKENIZER_ADDED_TOKENS_H_
#define PARTITA_RUNTIME_TOKENIZER_ADDED_TOKENS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/tokenizer/normalizer.h"

namespace partita::tokenizer {

struct AddedToken {
  int64_t id = 0;
  std::string content;       // normalized, if it is found in such texts
  bool single_word = false;  // only between characters that are not of words
  bool lstrip = false;       // takes the space before it
  bool rstrip = false;       // takes the space after it
  bool normalized = false;   // found in the normalized text
  bool special = false;      // left out of decoded texts
};

// A part of a text: a token, or text between tokens.
struct TextPart {
  std::string text;
  size_t begin = 0;    // byte of the searched text
  int64_t token = -1;  // -1: text
};

// Finds tokens in a text: the leftmost, of these the longest.
class TokenFinder {
 public:
  void Add(const AddedToken& token);
  std::vector<TextPart> Find(const std::string& text) const;

 private:
  // The longest token that begins at `begin`; null if there is none.
  const AddedToken* LongestAt(std::string_view text, size_t begin,
                              size_t& bytes) const;

  std::unordered_map<std::string, AddedToken> tokens_;
  // By first byte, the lengths of tokens, longest first.
  std::map<char, std::set<size_t, std::greater<size_t>>> lengths_;
};

class AddedTokens {
 public:
  // `normalizer` may be null.
  static absl::StatusOr<AddedTokens> Read(const nlohmann::json* list,
                                          const Normalizer* normalizer);

  const TokenFinder& plain() const { return plain_; }
  const TokenFinder& normalized() const { return normalized_; }
  // Null if no added token has this id.
  const AddedToken* Find(int64_t id) const;
  int64_t end() const { return end_; }  // above all ids

 private:
  std::map<int64_t, AddedToken> tokens_;
  TokenFinder plain_, normalized_;
  int64_t end_ = 0;
};

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_ADDED_TOKENS_H_
