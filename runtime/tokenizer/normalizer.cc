// One class per kind of normalizer.
#include "runtime/tokenizer/normalizer.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/byte_level.h"
#include "runtime/tokenizer/charsmap.h"
#include "runtime/tokenizer/fields.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {
namespace {

using nlohmann::json;
using NormalizerPtr = std::unique_ptr<Normalizer>;

constexpr char kKnown[] =
    "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, "
    "Replace, ByteLevel, Nmt, BertNormalizer, Precompiled";

// A function of a text.
class Function : public Normalizer {
 public:
  using Body = std::function<absl::StatusOr<std::string>(const std::string&)>;
  explicit Function(Body body) : body_(std::move(body)) {}
  absl::StatusOr<std::string> Apply(const std::string& text) const override {
    return body_(text);
  }

 private:
  const Body body_;
};

NormalizerPtr Make(Function::Body body) {
  return std::make_unique<Function>(std::move(body));
}

// A text of the characters for which `map` gives others.
std::string Mapped(
    const std::string& text,
    const std::function<std::optional<char32_t>(char32_t)>& map) {
  std::string result;
  for (size_t position = 0; position < text.size();)
    if (const auto c = map(NextChar(text, position))) AppendChar(result, *c);
  return result;
}

std::string WithoutMarks(const std::string& text, bool (*is_mark)(char32_t)) {
  return Mapped(text, [&](char32_t c) {
    return is_mark(c) ? std::nullopt : std::optional(c);
  });
}

std::string Stripped(const std::string& text, bool left, bool right) {
  size_t begin = text.size(), end = 0;
  for (size_t position = 0; position < text.size();) {
    const size_t at = position;
    if (IsSpace(NextChar(text, position))) continue;
    begin = std::min(begin, at);
    end = position;
  }
  if (!left) begin = 0;
  if (!right) end = text.size();
  return begin < end ? text.substr(begin, end - begin) : "";
}

bool IsChinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string CleanText(const std::string& text) {
  return Mapped(text, [](char32_t c) -> std::optional<char32_t> {
    const bool is_line = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xFFFD || (!is_line && IsOther(c))) return std::nullopt;
    return IsSpace(c) ? U' ' : c;
  });
}

std::string SpaceChinese(const std::string& text) {
  std::string result;
  for (size_t position = 0; position < text.size();) {
    const char32_t c = NextChar(text, position);
    if (IsChinese(c)) result += ' ';
    AppendChar(result, c);
    if (IsChinese(c)) result += ' ';
  }
  return result;
}

// SentencePiece's rules for machine translation.
std::string Nmt(const std::string& text) {
  return Mapped(text, [](char32_t c) -> std::optional<char32_t> {
    if ((c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
        c == 0x7F || c == 0x8F || c == 0x9F)
      return std::nullopt;
    const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D ||
                          c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                          c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                          c == 0xFEFF || c == 0xFFFD;
    return is_space ? U' ' : c;
  });
}

NormalizerPtr MakeBert(Fields& fields) {
  const bool clean = fields.Flag("clean_text", true),
             chinese = fields.Flag("handle_chinese_chars", true),
             lower = fields.Flag("lowercase", true),
             strip = fields.Flag("strip_accents", lower);
  return Make([=](const std::string& text) {
    std::string result = clean ? CleanText(text) : text;
    if (chinese) result = SpaceChinese(result);
    if (strip)
      result = WithoutMarks(Normalized(result, Form::kNfd), IsNonspacingMark);
    return lower ? Lowercase(result) : result;
  });
}

absl::StatusOr<NormalizerPtr> MakeSequence(Fields& fields) {
  auto steps = std::make_shared<std::vector<NormalizerPtr>>();
  for (const json& step : fields.List("normalizers")) {
    PARTITA_ASSIGN_OR_RETURN(NormalizerPtr made, ReadNormalizer(&step));
    if (made) steps->push_back(std::move(made));
  }
  return Make([steps](std::string text) -> absl::StatusOr<std::string> {
    for (const NormalizerPtr& step : *steps) {
      PARTITA_ASSIGN_OR_RETURN(text, step->Apply(text));
    }
    return text;
  });
}

absl::StatusOr<NormalizerPtr> MakeReplace(Fields& fields) {
  PARTITA_ASSIGN_OR_RETURN(Pattern read,
                           Pattern::Read(fields.Find("pattern"), "normalizer"));
  auto pattern = std::make_shared<Pattern>(std::move(read));
  const std::string content = fields.Text("content", "");
  return Make([pattern, content](const std::string& text) {
    return pattern->Replace(text, content);
  });
}

absl::StatusOr<NormalizerPtr> MakePrecompiled(Fields& fields) {
  const std::string text = fields.Text("precompiled_charsmap", "");
  // Some models have an empty table, which changes nothing.
  if (text.empty()) return Make([](const std::string& same) { return same; });
  PARTITA_ASSIGN_OR_RETURN(Charsmap read, Charsmap::FromBase64(text));
  auto map = std::make_shared<Charsmap>(std::move(read));
  return Make([map](const std::string& given) { return map->Apply(given); });
}

absl::StatusOr<NormalizerPtr> MakeByType(const std::string& type,
                                         Fields& fields) {
  for (const auto& [name, form] :
       {std::pair("NFC", Form::kNfc), std::pair("NFD", Form::kNfd),
        std::pair("NFKC", Form::kNfkc), std::pair("NFKD", Form::kNfkd)})
    if (type == name)
      return Make([form = form](const std::string& text) {
        return Normalized(text, form);
      });
  if (type == "Sequence") return MakeSequence(fields);
  if (type == "Replace") return MakeReplace(fields);
  if (type == "Precompiled") return MakePrecompiled(fields);
  if (type == "BertNormalizer") return MakeBert(fields);
  if (type == "Lowercase") return Make(Lowercase);
  if (type == "Nmt") return Make(Nmt);
  if (type == "ByteLevel") return Make(BytesAsChars);
  if (type == "StripAccents")
    return Make(
        [](const std::string& text) { return WithoutMarks(text, IsMark); });
  if (type == "Strip") {
    const bool left = fields.Flag("strip_left", true),
               right = fields.Flag("strip_right", true);
    return Make(
        [=](const std::string& text) { return Stripped(text, left, right); });
  }
  if (type == "Prepend") {
    const std::string prefix = fields.Text("prepend", "");
    return Make([=](const std::string& text) {
      return text.empty() ? text : prefix + text;
    });
  }
  return UnknownType("normalizer", type, kKnown);
}

}  // namespace

absl::StatusOr<NormalizerPtr> ReadNormalizer(const json* value) {
  if (value == nullptr || value->is_null()) return NormalizerPtr();
  Fields fields(*value, "normalizer");
  const std::string type = fields.Text("type", "");
  PARTITA_RETURN_IF_ERROR(fields.Check());
  absl::StatusOr<NormalizerPtr> made = MakeByType(type, fields);
  PARTITA_RETURN_IF_ERROR(fields.Check());
  return made;
}

}  // namespace partita::tokenizer
