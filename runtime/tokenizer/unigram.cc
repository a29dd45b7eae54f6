// Unigram language model (Kudo, 2018): the tokens whose scores have the largest
// sum.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {
namespace {

using nlohmann::json;

// An unknown character scores this much less than the worst token.
constexpr double kUnknownPenalty = 10;

class Unigram : public Model {
 public:
  absl::Status Read(Fields& fields);
  absl::Status Tokenize(const std::string& piece,
                        std::vector<int64_t>& tokens) const override;

 private:
  // The best way to a position: the token that ends there, and its begin.
  struct Step {
    double score = 0;
    int64_t begin = -1;  // none yet
    bool is_unknown = false;
  };
  struct Node {
    std::vector<std::pair<char, int>> next;
    int64_t token = -1;
  };

  void Insert(const std::string& text, int64_t token);
  int Child(int node, char byte) const;
  std::vector<Step> BestSteps(const std::string& piece) const;

  std::vector<double> scores_;
  std::vector<Node> nodes_ = {Node()};  // a trie of the tokens' bytes
  std::optional<int64_t> unknown_;
  double unknown_score_ = 0;
  bool falls_back_ = false, fuses_unknown_ = true;
};

absl::Status Unigram::Read(Fields& fields) {
  double least = std::numeric_limits<double>::infinity();
  for (const json& entry : fields.List("vocab")) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        !entry[1].is_number() || !std::isfinite(entry[1].get<double>()) ||
        static_cast<int64_t>(scores_.size()) >= kMostTokens) {
      fields.Wrong("vocab", "pairs of a text and its score");
      break;
    }
    const int64_t id = static_cast<int64_t>(scores_.size());
    const std::string text = entry[0].get<std::string>();
    vocabulary_.Add(text, id);
    scores_.push_back(entry[1].get<double>());
    least = std::min(least, scores_.back());
    if (!text.empty()) Insert(text, id);
  }
  if (fields.Find("unk_id") != nullptr) {
    unknown_ = fields.Count("unk_id", 0);
    if (*unknown_ >= static_cast<int64_t>(scores_.size()))
      fields.Wrong("unk_id", "an id of the vocabulary");
  }
  unknown_score_ = scores_.empty() ? 0 : least - kUnknownPenalty;
  falls_back_ = fields.Flag("byte_fallback", false);
  return fields.Check();
}

void Unigram::Insert(const std::string& text, int64_t token) {
  int node = 0;
  for (const char byte : text) {
    int child = Child(node, byte);
    if (child < 0) {
      child = static_cast<int>(nodes_.size());
      std::vector<std::pair<char, int>>& next =
          nodes_[static_cast<size_t>(node)].next;
      next.insert(
          std::lower_bound(next.begin(), next.end(), std::pair(byte, 0)),
          {byte, child});
      nodes_.emplace_back();
    }
    node = child;
  }
  nodes_[static_cast<size_t>(node)].token = token;
}

int Unigram::Child(int node, char byte) const {
  const std::vector<std::pair<char, int>>& next =
      nodes_[static_cast<size_t>(node)].next;
  const auto found =
      std::lower_bound(next.begin(), next.end(), std::pair(byte, 0));
  return found == next.end() || found->first != byte ? -1 : found->second;
}

std::vector<Unigram::Step> Unigram::BestSteps(const std::string& piece) const {
  std::vector<Step> steps(piece.size() + 1);
  const auto offer = [&](size_t begin, size_t end, double score,
                         bool is_unknown) {
    Step& step = steps[end];
    score += steps[begin].score;
    if (step.begin < 0 || score > step.score)
      step = {score, static_cast<int64_t>(begin), is_unknown};
  };
  for (size_t begin = 0; begin < piece.size();) {
    const size_t character =
        std::min(CharBytes(piece[begin]), piece.size() - begin);
    bool has_character = false;
    int node = 0;
    for (size_t end = begin; end < piece.size();) {
      node = Child(node, piece[end++]);
      if (node < 0) break;
      const int64_t token = nodes_[static_cast<size_t>(node)].token;
      if (token < 0) continue;
      offer(begin, end, scores_[static_cast<size_t>(token)],
            unknown_ && token == *unknown_);
      has_character = has_character || end - begin == character;
    }
    if (!has_character)
      offer(begin, begin + character, unknown_score_, /*is_unknown=*/true);
    begin += character;
  }
  return steps;
}

absl::Status Unigram::Tokenize(const std::string& piece,
                               std::vector<int64_t>& tokens) const {
  const std::vector<Step> steps = BestSteps(piece);
  std::vector<std::pair<size_t, size_t>> parts;  // the last one first
  bool joins = false;  // the part after is unknown, and so is this one
  for (size_t end = piece.size(); end > 0;) {
    const size_t begin = static_cast<size_t>(steps[end].begin);
    const bool is_unknown = fuses_unknown_ && unknown_ && steps[end].is_unknown;
    if (joins && is_unknown)
      parts.back().first = begin;
    else
      parts.push_back({begin, end});
    joins = is_unknown;
    end = begin;
  }
  std::reverse(parts.begin(), parts.end());
  for (const auto& [begin, end] : parts) {
    const std::string text = piece.substr(begin, end - begin);
    if (const auto id = vocabulary_.IdOf(text)) {
      tokens.push_back(*id);
      continue;
    }
    const std::vector<int64_t> bytes =
        falls_back_ ? ByteTokens(text) : std::vector<int64_t>();
    if (bytes.empty() && !unknown_)
      return absl::InvalidArgumentError(
          absl::StrCat("the tokenizer has no token for '", text,
                       "' and no unk_id; expected a text of its characters"));
    if (bytes.empty())
      tokens.push_back(*unknown_);
    else
      tokens.insert(tokens.end(), bytes.begin(), bytes.end());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> ReadUnigram(Fields& fields) {
  auto model = std::make_unique<Unigram>();
  PARTITA_RETURN_IF_ERROR(model->Read(fields));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace partita::tokenizer
