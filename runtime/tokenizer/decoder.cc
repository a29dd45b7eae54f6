// One function per kind of decoder.
#include "runtime/tokenizer/decoder.h"

#include <functional>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/byte_level.h"
#include "runtime/tokenizer/fields.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/unicode.h"

namespace partita::tokenizer {
namespace {

using nlohmann::json;
using DecoderPtr = std::unique_ptr<Decoder>;
using Texts = std::vector<std::string>;

constexpr char kKnown[] =
    "Sequence, ByteLevel, WordPiece, Metaspace, BPEDecoder, ByteFallback, "
    "Fuse, Strip, Replace";

class Function : public Decoder {
 public:
  using Body = std::function<absl::StatusOr<Texts>(Texts)>;
  explicit Function(Body body) : body_(std::move(body)) {}
  absl::StatusOr<Texts> Apply(Texts tokens) const override {
    return body_(std::move(tokens));
  }

 private:
  const Body body_;
};

DecoderPtr Make(Function::Body body) {
  return std::make_unique<Function>(std::move(body));
}

// A decoder that changes each token by itself.
DecoderPtr ForEach(std::function<std::string(size_t, const std::string&)> map) {
  return Make([map = std::move(map)](Texts tokens) -> absl::StatusOr<Texts> {
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = map(i, tokens[i]);
    return tokens;
  });
}

std::string Joined(const Texts& texts) {
  std::string result;
  for (const std::string& text : texts) result += text;
  return result;
}

std::string Replaced(const std::string& text, const std::string& from,
                     const std::string& to) {
  std::string result;
  size_t done = 0;
  for (size_t at = text.find(from); !from.empty() && at != std::string::npos;
       at = text.find(from, done)) {
    result.append(text, done, at - done);
    result += to;
    done = at + from.size();
  }
  return result.append(text, done, std::string::npos);
}

DecoderPtr MakeWordPiece(Fields& fields) {
  const std::string prefix = fields.Text("prefix", "##");
  const bool cleans = fields.Flag("cleanup", true);
  return ForEach([=](size_t i, const std::string& token) {
    std::string text = token;
    if (i > 0 && !prefix.empty() && text.compare(0, prefix.size(), prefix) == 0)
      text.erase(0, prefix.size());
    else if (i > 0)
      text.insert(0, 1, ' ');
    if (!cleans) return text;
    for (const auto& [from, to] :
         {std::pair(" .", "."), std::pair(" ?", "?"), std::pair(" !", "!"),
          std::pair(" ,", ","), std::pair(" ' ", "'"), std::pair(" n't", "n't"),
          std::pair(" 'm", "'m"), std::pair(" do not", " don't"),
          std::pair(" 's", "'s"), std::pair(" 've", "'ve"),
          std::pair(" 're", "'re")})
      text = Replaced(text, from, to);
    return text;
  });
}

DecoderPtr MakeMetaspace(Fields& fields) {
  const std::string mark = fields.Text("replacement", "\u2581");
  const bool adds = fields.Flag("add_prefix_space", true);
  const bool drops_first =
      fields.Text("prepend_scheme", adds ? "always" : "never") != "never";
  return ForEach([=](size_t i, const std::string& token) {
    return Replaced(token, mark, i == 0 && drops_first ? "" : " ");
  });
}

// The byte of a token <0x41>; -1 for others.
int ByteOf(const std::string& token) {
  if (token.size() != 6 || token.compare(0, 3, "<0x") != 0 || token[5] != '>')
    return -1;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  const int high = digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

// Runs of byte tokens become their text, or a U+FFFD each if they are no UTF-8.
Texts JoinBytes(const Texts& tokens) {
  Texts result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (ToValidUtf8(bytes) == bytes)
      result.push_back(bytes);
    else
      result.insert(result.end(), bytes.size(), "\uFFFD");
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    const int byte = ByteOf(token);
    if (byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    result.push_back(token);
  }
  flush();
  return result;
}

absl::StatusOr<DecoderPtr> MakeStrip(Fields& fields) {
  const std::string content = fields.Text("content", " ");
  const int64_t start = fields.Count("start", 0),
                stop = fields.Count("stop", 0);
  if (CountChars(content) != 1) fields.Wrong("content", "one character");
  PARTITA_RETURN_IF_ERROR(fields.Check());
  return ForEach([=](size_t, const std::string& token) {
    std::string text = token;
    for (int64_t i = 0;
         i < start && text.compare(0, content.size(), content) == 0; ++i)
      text.erase(0, content.size());
    for (int64_t i = 0; i < stop && text.size() >= content.size() &&
                        text.compare(text.size() - content.size(),
                                     content.size(), content) == 0;
         ++i)
      text.resize(text.size() - content.size());
    return text;
  });
}

absl::StatusOr<DecoderPtr> MakeReplace(Fields& fields) {
  PARTITA_ASSIGN_OR_RETURN(Pattern read,
                           Pattern::Read(fields.Find("pattern"), "decoder"));
  auto pattern = std::make_shared<Pattern>(std::move(read));
  const std::string content = fields.Text("content", "");
  return Make([=](Texts tokens) -> absl::StatusOr<Texts> {
    for (std::string& token : tokens) {
      PARTITA_ASSIGN_OR_RETURN(token, pattern->Replace(token, content));
    }
    return tokens;
  });
}

absl::StatusOr<DecoderPtr> MakeSequence(Fields& fields) {
  auto steps = std::make_shared<std::vector<DecoderPtr>>();
  for (const json& step : fields.List("decoders")) {
    PARTITA_ASSIGN_OR_RETURN(DecoderPtr made, ReadDecoder(&step));
    if (made) steps->push_back(std::move(made));
  }
  return Make([steps](Texts tokens) -> absl::StatusOr<Texts> {
    for (const DecoderPtr& step : *steps) {
      PARTITA_ASSIGN_OR_RETURN(tokens, step->Apply(std::move(tokens)));
    }
    return tokens;
  });
}

absl::StatusOr<DecoderPtr> MakeByType(const std::string& type, Fields& fields) {
  if (type == "Sequence") return MakeSequence(fields);
  if (type == "Replace") return MakeReplace(fields);
  if (type == "Strip") return MakeStrip(fields);
  if (type == "WordPiece") return MakeWordPiece(fields);
  if (type == "Metaspace") return MakeMetaspace(fields);
  if (type == "ByteFallback")
    return Make([](const Texts& tokens) -> absl::StatusOr<Texts> {
      return JoinBytes(tokens);
    });
  if (type == "Fuse")
    return Make([](const Texts& tokens) -> absl::StatusOr<Texts> {
      return Texts{Joined(tokens)};
    });
  if (type == "ByteLevel")
    return Make([](const Texts& tokens) -> absl::StatusOr<Texts> {
      std::string bytes;
      for (const std::string& token : tokens) bytes += CharsAsBytes(token);
      return Texts{ToValidUtf8(bytes)};
    });
  if (type == "BPEDecoder") {
    const std::string suffix = fields.Text("suffix", "</w>");
    return Make([=](Texts tokens) -> absl::StatusOr<Texts> {
      for (size_t i = 0; i < tokens.size(); ++i)
        tokens[i] =
            Replaced(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
      return tokens;
    });
  }
  return UnknownType("decoder", type, kKnown);
}

}  // namespace

absl::StatusOr<DecoderPtr> ReadDecoder(const json* value) {
  if (value == nullptr || value->is_null()) return DecoderPtr();
  Fields fields(*value, "decoder");
  const std::string type = fields.Text("type", "");
  PARTITA_RETURN_IF_ERROR(fields.Check());
  absl::StatusOr<DecoderPtr> made = MakeByType(type, fields);
  PARTITA_RETURN_IF_ERROR(fields.Check());
  return made;
}

}  // namespace partita::tokenizer
