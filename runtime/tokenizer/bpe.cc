// Byte-pair encoding (Sennrich et al., 2016): joins the neighbours of the
// lowest rank, the leftmost first, until no pair has a rank.
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {
namespace {

using nlohmann::json;

class Bpe : public Model {
 public:
  absl::Status Read(Fields& fields);
  absl::Status Tokenize(const std::string& piece,
                        std::vector<int64_t>& tokens) const override;

 private:
  struct Merge {
    int64_t rank = 0;
    int64_t token = 0;  // of the joined text
  };
  // A token of the piece, linked to its neighbours; joined ones leave the list.
  struct Symbol {
    int64_t token;
    int64_t before, after;  // -1: none
    bool removed = false;
  };

  // The two texts of a merge; false if the entry is something else.
  static bool ReadPair(const json& entry, std::string& left,
                       std::string& right);
  absl::Status ReadMerges(Fields& fields);
  const Merge* Find(int64_t left, int64_t right) const {
    const auto found = merges_.find({left, right});
    return found == merges_.end() ? nullptr : &found->second;
  }
  void AppendUnknown(std::vector<int64_t>& tokens, bool& after_unknown) const;
  std::vector<int64_t> Characters(const std::string& piece) const;
  void Join(std::vector<int64_t>& tokens) const;

  absl::flat_hash_map<std::pair<int64_t, int64_t>, Merge> merges_;
  std::string prefix_, suffix_;  // of characters within, and at the end
  std::optional<int64_t> unknown_;
  bool fuses_unknown_ = false, falls_back_ = false, ignores_merges_ = false;
};

absl::Status Bpe::Read(Fields& fields) {
  ReadVocabulary(fields);
  prefix_ = fields.Text("continuing_subword_prefix", "");
  suffix_ = fields.Text("end_of_word_suffix", "");
  fuses_unknown_ = fields.Flag("fuse_unk", false);
  falls_back_ = fields.Flag("byte_fallback", false);
  ignores_merges_ = fields.Flag("ignore_merges", false);
  const std::string unknown = fields.Text("unk_token", "");
  if (!unknown.empty()) {
    unknown_ = vocabulary_.IdOf(unknown);
    if (!unknown_) fields.Wrong("unk_token", "a token of the vocabulary");
  }
  PARTITA_RETURN_IF_ERROR(fields.Check());
  return ReadMerges(fields);
}

bool Bpe::ReadPair(const json& entry, std::string& left, std::string& right) {
  if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
      entry[1].is_string()) {
    left = entry[0].get<std::string>();
    right = entry[1].get<std::string>();
    return true;
  }
  if (!entry.is_string()) return false;
  const std::string text = entry.get<std::string>();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != text.npos)
    return false;
  left = text.substr(0, space);
  right = text.substr(space + 1);
  return true;
}

absl::Status Bpe::ReadMerges(Fields& fields) {
  int64_t rank = 0;
  for (const json& entry : fields.List("merges")) {
    std::string left, right;
    if (!ReadPair(entry, left, right)) {
      fields.Wrong("merges", "pairs of texts, as \"a b\" or [\"a\", \"b\"]");
      break;
    }
    const std::string joined =
        left + (right.compare(0, prefix_.size(), prefix_) == 0
                    ? right.substr(prefix_.size())
                    : right);
    const auto first = vocabulary_.IdOf(left), second = vocabulary_.IdOf(right),
               token = vocabulary_.IdOf(joined);
    if (!first || !second || !token) {
      fields.Wrong("merges", absl::StrCat("tokens of the vocabulary, found '",
                                          left, "' and '", right, "'"));
      break;
    }
    merges_[{*first, *second}] = {rank++, *token};
  }
  return fields.Check();
}

void Bpe::AppendUnknown(std::vector<int64_t>& tokens,
                        bool& after_unknown) const {
  if (unknown_ && !(fuses_unknown_ && after_unknown))
    tokens.push_back(*unknown_);
  after_unknown = unknown_.has_value();
}

std::vector<int64_t> Bpe::Characters(const std::string& piece) const {
  std::vector<int64_t> tokens;
  bool after_unknown = false;
  for (size_t begin = 0; begin < piece.size();) {
    const size_t size = std::min(CharBytes(piece[begin]), piece.size() - begin);
    std::string text = piece.substr(begin, size);
    if (begin > 0) text.insert(0, prefix_);
    if (begin + size == piece.size()) text += suffix_;
    if (const auto id = vocabulary_.IdOf(text)) {
      tokens.push_back(*id);
      after_unknown = false;
    } else if (std::vector<int64_t> bytes =
                   falls_back_ ? ByteTokens(text) : std::vector<int64_t>();
               !bytes.empty()) {
      tokens.insert(tokens.end(), bytes.begin(), bytes.end());
      after_unknown = false;
    } else {
      AppendUnknown(tokens, after_unknown);
    }
    begin += size;
  }
  return tokens;
}

void Bpe::Join(std::vector<int64_t>& tokens) const {
  const int64_t count = static_cast<int64_t>(tokens.size());
  std::vector<Symbol> symbols;
  for (int64_t i = 0; i < count; ++i)
    symbols.push_back(
        {tokens[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  const auto at = [&](int64_t i) -> Symbol& {
    return symbols[static_cast<size_t>(i)];
  };
  struct Candidate {
    int64_t rank, position, token;
    bool operator<(const Candidate& other) const {  // the last comes first
      return std::pair(rank, position) > std::pair(other.rank, other.position);
    }
  };
  std::priority_queue<Candidate> candidates;
  const auto consider = [&](int64_t left) {
    if (left < 0 || at(left).after < 0) return;
    if (const Merge* merge = Find(at(left).token, at(at(left).after).token))
      candidates.push({merge->rank, left, merge->token});
  };
  for (int64_t i = 0; i < count; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate next = candidates.top();
    candidates.pop();
    Symbol& left = at(next.position);
    if (left.removed || left.after < 0) continue;
    Symbol& right = at(left.after);
    // Either may have changed since the candidate was found.
    const Merge* merge = Find(left.token, right.token);
    if (merge == nullptr || merge->token != next.token) continue;
    left.token = next.token;
    right.removed = true;
    left.after = right.after;
    if (left.after >= 0) at(left.after).before = next.position;
    consider(left.before);
    consider(next.position);
  }
  tokens.clear();
  for (const Symbol& symbol : symbols)
    if (!symbol.removed) tokens.push_back(symbol.token);
}

absl::Status Bpe::Tokenize(const std::string& piece,
                           std::vector<int64_t>& tokens) const {
  if (ignores_merges_) {
    if (const auto id = vocabulary_.IdOf(piece)) {
      tokens.push_back(*id);
      return absl::OkStatus();
    }
  }
  std::vector<int64_t> parts = Characters(piece);
  Join(parts);
  tokens.insert(tokens.end(), parts.begin(), parts.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> ReadBpe(Fields& fields) {
  auto model = std::make_unique<Bpe>();
  PARTITA_RETURN_IF_ERROR(model->Read(fields));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace partita::tokenizer
