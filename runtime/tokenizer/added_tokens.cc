// Compares the text with the tokens of each length that its bytes may begin.
#include "runtime/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/fields.h"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {
namespace {

using nlohmann::json;

bool EndsWithWord(std::string_view text) {
  if (text.empty()) return false;
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
    --begin;
  return IsWord(NextChar(text, begin));
}

bool BeginsWithWord(std::string_view text) {
  size_t position = 0;
  return !text.empty() && IsWord(NextChar(text, position));
}

// The beginning of the space at the end of a text.
size_t TrailingSpace(std::string_view text) {
  size_t begin = 0;
  for (size_t position = 0; position < text.size();)
    if (!IsSpace(NextChar(text, position))) begin = position;
  return begin;
}

size_t LeadingSpace(std::string_view text) {
  size_t end = 0;
  for (size_t position = 0;
       position < text.size() && IsSpace(NextChar(text, position));)
    end = position;
  return end;
}

}  // namespace

void TokenFinder::Add(const AddedToken& token) {
  if (token.content.empty()) return;
  tokens_[token.content] = token;
  lengths_[token.content[0]].insert(token.content.size());
}

const AddedToken* TokenFinder::LongestAt(std::string_view text, size_t begin,
                                         size_t& bytes) const {
  const auto lengths = lengths_.find(text[begin]);
  if (lengths == lengths_.end()) return nullptr;
  for (const size_t length : lengths->second) {
    if (length > text.size() - begin) continue;
    const auto found = tokens_.find(std::string(text.substr(begin, length)));
    if (found == tokens_.end()) continue;
    bytes = length;
    return &found->second;
  }
  return nullptr;
}

std::vector<TextPart> TokenFinder::Find(const std::string& given) const {
  const std::string_view text = given;
  std::vector<TextPart> parts;
  size_t done = 0;
  const auto add_text = [&](size_t end) {
    if (done < end) parts.push_back({given.substr(done, end - done), done, -1});
  };
  for (size_t at = 0; at < text.size();) {
    size_t bytes = 0;
    const AddedToken* token = LongestAt(text, at, bytes);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + bytes;
    at = end;
    if (token->single_word && (EndsWithWord(text.substr(0, begin)) ||
                               BeginsWithWord(text.substr(end))))
      continue;
    if (token->lstrip)
      begin = std::max(done, TrailingSpace(text.substr(0, begin)));
    if (token->rstrip) end += LeadingSpace(text.substr(end));
    add_text(std::max(done, begin));
    parts.push_back({"", begin, token->id});
    done = end;
  }
  add_text(text.size());
  return parts;
}

absl::StatusOr<AddedTokens> AddedTokens::Read(const json* list,
                                              const Normalizer* normalizer) {
  AddedTokens tokens;
  if (list == nullptr) return tokens;
  if (!list->is_array())
    return absl::InvalidArgumentError("added_tokens: expected a list");
  for (const json& entry : *list) {
    Fields fields(entry, "added_tokens");
    AddedToken token;
    if (fields.Find("id") == nullptr) fields.Wrong("id", "a number");
    token.id = fields.Count("id", 0);
    token.content = fields.Text("content", "");
    token.single_word = fields.Flag("single_word", false);
    token.lstrip = fields.Flag("lstrip", false);
    token.rstrip = fields.Flag("rstrip", false);
    token.special = fields.Flag("special", false);
    token.normalized = fields.Flag("normalized", !token.special);
    PARTITA_RETURN_IF_ERROR(fields.Check());
    if (token.normalized && normalizer != nullptr) {
      PARTITA_ASSIGN_OR_RETURN(token.content, normalizer->Apply(token.content));
    }
    (token.normalized ? tokens.normalized_ : tokens.plain_).Add(token);
    tokens.end_ = std::max(tokens.end_, token.id + 1);
    tokens.tokens_[token.id] = std::move(token);
  }
  return tokens;
}

const AddedToken* AddedTokens::Find(int64_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

}  // namespace partita::tokenizer
