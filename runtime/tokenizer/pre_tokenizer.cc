// One class per kind of pre-tokenizer.
#include "runtime/tokenizer/pre_tokenizer.h"

#include <functional>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/byte_level.h"
#include "runtime/tokenizer/fields.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/split.h"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {
namespace {

using nlohmann::json;
using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;

constexpr char kKnown[] =
    "Sequence, ByteLevel, Metaspace, Split, Whitespace, WhitespaceSplit, "
    "BertPreTokenizer, Punctuation, Digits, CharDelimiterSplit";
// GPT-2's expression (Radford et al., 2019).
constexpr char kWords[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A function from a piece to pieces.
class Function : public PreTokenizer {
 public:
  using Body = std::function<absl::StatusOr<std::vector<Piece>>(Piece)>;
  explicit Function(Body body) : body_(std::move(body)) {}
  absl::StatusOr<std::vector<Piece>> Split(
      std::vector<Piece> pieces) const override {
    std::vector<Piece> result;
    for (Piece& piece : pieces) {
      PARTITA_ASSIGN_OR_RETURN(std::vector<Piece> parts,
                               body_(std::move(piece)));
      for (Piece& part : parts)
        if (!part.text.empty()) result.push_back(std::move(part));
    }
    return result;
  }

 private:
  const Body body_;
};

PreTokenizerPtr Make(Function::Body body) {
  return std::make_unique<Function>(std::move(body));
}

std::vector<Piece> Cut(const Piece& piece, const std::vector<Range>& ranges) {
  std::vector<Piece> parts;
  for (const auto& [begin, end] : ranges)
    parts.push_back(
        {piece.text.substr(begin, end - begin), piece.first && begin == 0});
  return parts;
}

// Splits at each character for which `is_match` holds.
PreTokenizerPtr ByCharacter(std::function<bool(char32_t)> is_match,
                            Behavior behavior) {
  return Make([is_match = std::move(is_match), behavior](
                  const Piece& piece) -> absl::StatusOr<std::vector<Piece>> {
    std::vector<Range> matches;
    for (size_t position = 0; position < piece.text.size();) {
      const size_t begin = position;
      if (is_match(NextChar(piece.text, position)))
        matches.push_back({begin, position});
    }
    return Cut(piece, SplitAt(piece.text.size(), matches, behavior, false));
  });
}

PreTokenizerPtr ByPattern(Pattern given, Behavior behavior, bool invert) {
  auto pattern = std::make_shared<Pattern>(std::move(given));
  return Make([pattern, behavior, invert](
                  const Piece& piece) -> absl::StatusOr<std::vector<Piece>> {
    PARTITA_ASSIGN_OR_RETURN(const std::vector<Range> matches,
                             pattern->Matches(piece.text));
    return Cut(piece, SplitAt(piece.text.size(), matches, behavior, invert));
  });
}

absl::StatusOr<PreTokenizerPtr> InOrder(std::vector<PreTokenizerPtr> given) {
  class Sequence : public PreTokenizer {
   public:
    explicit Sequence(std::vector<PreTokenizerPtr> steps)
        : steps_(std::move(steps)) {}
    absl::StatusOr<std::vector<Piece>> Split(
        std::vector<Piece> pieces) const override {
      for (const PreTokenizerPtr& step : steps_) {
        PARTITA_ASSIGN_OR_RETURN(pieces, step->Split(std::move(pieces)));
      }
      return pieces;
    }

   private:
    const std::vector<PreTokenizerPtr> steps_;
  };
  return PreTokenizerPtr(std::make_unique<Sequence>(std::move(given)));
}

absl::StatusOr<PreTokenizerPtr> MakeByteLevel(Fields& fields) {
  const bool prefix = fields.Flag("add_prefix_space", true);
  std::vector<PreTokenizerPtr> steps;
  if (prefix)
    steps.push_back(Make([](Piece piece) -> absl::StatusOr<std::vector<Piece>> {
      if (!piece.text.empty() && piece.text[0] != ' ')
        piece.text.insert(0, 1, ' ');
      return std::vector<Piece>{std::move(piece)};
    }));
  if (fields.Flag("use_regex", true)) {
    PARTITA_ASSIGN_OR_RETURN(Pattern words, Pattern::FromRegex(kWords));
    steps.push_back(
        ByPattern(std::move(words), Behavior::kIsolated, /*invert=*/false));
  }
  steps.push_back(Make([](Piece piece) -> absl::StatusOr<std::vector<Piece>> {
    return std::vector<Piece>{{BytesAsChars(piece.text), piece.first}};
  }));
  return InOrder(std::move(steps));
}

absl::StatusOr<PreTokenizerPtr> MakeMetaspace(Fields& fields) {
  const std::string mark = fields.Text("replacement", "\u2581");
  const bool adds = fields.Flag("add_prefix_space", true);
  const std::string scheme =
      fields.Text("prepend_scheme", adds ? "always" : "never");
  const bool splits = fields.Flag("split", true);
  if (CountChars(mark) != 1) fields.Wrong("replacement", "one character");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    fields.Wrong("prepend_scheme", "always, first or never");
  PARTITA_RETURN_IF_ERROR(fields.Check());
  return Make([=](Piece piece) -> absl::StatusOr<std::vector<Piece>> {
    std::string text;
    for (const char c : piece.text)
      if (c == ' ')
        text += mark;
      else
        text += c;
    const bool is_asked =
        scheme == "always" || (scheme == "first" && piece.first);
    if (is_asked && !text.empty() && text.compare(0, mark.size(), mark) != 0)
      text.insert(0, mark);
    piece.text = std::move(text);
    if (!splits) return std::vector<Piece>{std::move(piece)};
    std::vector<Range> marks;
    for (size_t at = piece.text.find(mark); at != std::string::npos;
         at = piece.text.find(mark, at + mark.size()))
      marks.push_back({at, at + mark.size()});
    return Cut(piece, SplitAt(piece.text.size(), marks,
                              Behavior::kMergedWithNext, false));
  });
}

absl::StatusOr<PreTokenizerPtr> MakeSplit(Fields& fields) {
  PARTITA_ASSIGN_OR_RETURN(
      Pattern pattern, Pattern::Read(fields.Find("pattern"), "pre_tokenizer"));
  PARTITA_ASSIGN_OR_RETURN(
      const Behavior behavior,
      ParseBehavior(fields.Text("behavior", ""), "pre_tokenizer"));
  return ByPattern(std::move(pattern), behavior, fields.Flag("invert", false));
}

absl::StatusOr<PreTokenizerPtr> MakeSequence(Fields& fields) {
  std::vector<PreTokenizerPtr> steps;
  for (const json& step : fields.List("pretokenizers")) {
    PARTITA_ASSIGN_OR_RETURN(PreTokenizerPtr made, ReadPreTokenizer(&step));
    if (made) steps.push_back(std::move(made));
  }
  return InOrder(std::move(steps));
}

absl::StatusOr<PreTokenizerPtr> MakeByType(const std::string& type,
                                           Fields& fields) {
  if (type == "Sequence") return MakeSequence(fields);
  if (type == "ByteLevel") return MakeByteLevel(fields);
  if (type == "Metaspace") return MakeMetaspace(fields);
  if (type == "Split") return MakeSplit(fields);
  if (type == "WhitespaceSplit")
    return ByCharacter(IsSpace, Behavior::kRemoved);
  if (type == "Whitespace") {
    PARTITA_ASSIGN_OR_RETURN(Pattern words,
                             Pattern::FromRegex(R"(\w+|[^\w\s]+)"));
    return ByPattern(std::move(words), Behavior::kRemoved, /*invert=*/true);
  }
  if (type == "BertPreTokenizer") {
    std::vector<PreTokenizerPtr> steps;
    steps.push_back(ByCharacter(IsSpace, Behavior::kRemoved));
    steps.push_back(ByCharacter(IsPunctuation, Behavior::kIsolated));
    return InOrder(std::move(steps));
  }
  if (type == "Punctuation") {
    PARTITA_ASSIGN_OR_RETURN(
        const Behavior behavior,
        ParseBehavior(fields.Text("behavior", "Isolated"), "pre_tokenizer"));
    return ByCharacter(IsPunctuation, behavior);
  }
  if (type == "Digits")
    return ByCharacter(IsNumber, fields.Flag("individual_digits", false)
                                     ? Behavior::kIsolated
                                     : Behavior::kContiguous);
  if (type == "CharDelimiterSplit") {
    const std::string delimiter = fields.Text("delimiter", "");
    if (CountChars(delimiter) != 1) fields.Wrong("delimiter", "one character");
    PARTITA_RETURN_IF_ERROR(fields.Check());
    size_t position = 0;
    const char32_t character = NextChar(delimiter, position);
    return ByCharacter([=](char32_t c) { return c == character; },
                       Behavior::kRemoved);
  }
  return UnknownType("pre_tokenizer", type, kKnown);
}

}  // namespace

absl::StatusOr<PreTokenizerPtr> ReadPreTokenizer(const json* value) {
  if (value == nullptr || value->is_null()) return PreTokenizerPtr();
  Fields fields(*value, "pre_tokenizer");
  const std::string type = fields.Text("type", "");
  PARTITA_RETURN_IF_ERROR(fields.Check());
  absl::StatusOr<PreTokenizerPtr> made = MakeByType(type, fields);
  PARTITA_RETURN_IF_ERROR(fields.Check());
  return made;
}

}  // namespace partita::tokenizer
