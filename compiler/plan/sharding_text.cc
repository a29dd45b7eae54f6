// Parses shardings in the syntax of core's ToString:
//   sharding  ::= '[' (dim (',' dim)*)? ']' (word '=' '{' axes '}')*
//   dim       ::= '{' (item (',' item)*)? '}' ('|' rows)?
//   item      ::= axis | '?'          (? last)
//   word      ::= 'replicated' | 'unreduced'
// Axis names may be in double quotes, as in Shardy.
#include "compiler/plan/plan.h"
#include "compiler/plan/text.h"

namespace partita::plan {
namespace {

using absl::InvalidArgumentError;
using absl::OkStatus;
using absl::Status;
using absl::StatusOr;

class ShardingParser {
 public:
  ShardingParser(const std::string& text, const core::Mesh& mesh)
      : text_(text), mesh_(mesh) {}

  StatusOr<core::Sharding> Parse() {
    if (Status status = ParseDims(); !status.ok()) return status;
    for (Skip(); at_ < text_.size(); Skip())
      if (Status status = ParseList(); !status.ok()) return status;
    return sharding_;
  }

 private:
  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t'))
      ++at_;
  }

  bool Take(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status Expected(const std::string& what) const {
    return InvalidArgumentError(
        "expected " + what + " at character " + std::to_string(at_ + 1) +
        " of a sharding such as [{}, {tensor}], found " +
        (at_ < text_.size() ? Quote(text_.substr(at_)) : "the end"));
  }

  std::string Word() {
    Skip();
    const size_t end = text_.find_first_of(" \t,{}[]|=?", at_);
    const std::string word = text_.substr(at_, end - at_);
    at_ += word.size();
    return word;
  }

  // Parses one axis and refuses it if it is already used.
  Status ParseOneAxis(std::vector<core::AxisRef>& axes) {
    Skip();
    const size_t begin = at_;
    std::string word = Word();
    if (word.empty()) return Expected("an axis");
    if (word.size() > 1 && word.front() == '"') {
      // A quoted axis: "a" or "a":(1)2.
      const size_t close = word.find('"', 1);
      if (close == std::string::npos) {
        at_ = begin;
        return Expected("a closed quote");
      }
      word.erase(close, 1).erase(0, 1);
    }
    StatusOr<core::AxisRef> axis = ParseAxis(word, mesh_);
    if (!axis.ok()) return axis.status();
    if (Status status = CheckUnused(mesh_, *axis, used_, "a sharding");
        !status.ok())
      return status;
    used_.push_back(*axis);
    axes.push_back(*axis);
    return OkStatus();
  }

  Status ParseDim() {
    if (!Take('{')) return Expected("'{'");
    core::DimSharding dim;
    dim.open = false;
    if (!Take('}')) {
      do {
        if (dim.open) return Expected("'}' after '?'");
        if (Take('?')) {
          dim.open = true;
        } else if (Status status = ParseOneAxis(dim.axes); !status.ok()) {
          return status;
        }
      } while (Take(','));
      if (!Take('}')) return Expected("',' or '}'");
    }
    if (Take('|')) {
      const size_t begin = at_;
      const StatusOr<int64_t> rows = ParseCount(Word());
      if (!rows.ok() || *rows == 0 || dim.axes.empty()) {
        at_ = begin;
        return Expected(dim.axes.empty() ? "axes before a number of rows"
                                         : "a number of rows per shard");
      }
      dim.block = *rows;
    }
    sharding_.dims.push_back(std::move(dim));
    return OkStatus();
  }

  Status ParseDims() {
    if (!Take('[')) return Expected("'['");
    if (Take(']')) return OkStatus();
    do {
      if (Status status = ParseDim(); !status.ok()) return status;
    } while (Take(','));
    if (!Take(']')) return Expected("',' or ']'");
    return OkStatus();
  }

  Status ParseList() {
    const size_t begin = at_;
    const std::string word = Word();
    std::vector<core::AxisRef>* list =
        word == "replicated"  ? &sharding_.replicated
        : word == "unreduced" ? &sharding_.unreduced
                              : nullptr;
    if (list == nullptr || !list->empty()) {
      at_ = begin;
      return Expected("replicated={...} or unreduced={...}, each once,");
    }
    if (!Take('=')) return Expected("'='");
    if (!Take('{')) return Expected("'{'");
    do {
      if (Status status = ParseOneAxis(*list); !status.ok()) return status;
    } while (Take(','));
    if (!Take('}')) return Expected("',' or '}'");
    return OkStatus();
  }

  const std::string& text_;
  const core::Mesh& mesh_;
  size_t at_ = 0;
  core::Sharding sharding_;
  std::vector<core::AxisRef> used_;
};

}  // namespace

StatusOr<core::Sharding> ParseShardingText(const std::string& text,
                                           const core::Mesh& mesh) {
  return ShardingParser(text, mesh).Parse();
}

}  // namespace partita::plan
