// Types of fields, and limits on the messages of one file.
#include "frontends/onnx/field_decoder.h"

#include <string>

namespace partita::onnx {
namespace {

// Graphs nest in attributes of nodes. Exporters nest only a few levels deep.
constexpr int kMaxDepth = 64;
// Each decoded message costs memory, but an empty one takes only two bytes in
// the file. The limit bounds the memory for a hostile file.
constexpr uint64_t kMaxMessages = uint64_t{1} << 22;

}  // namespace

bool FieldDecoder::enter(const Field& field, const char* what) {
  if (!expect(field, WireType::kBytes, what)) return false;
  if (depth_ >= kMaxDepth) {
    error_.set(field.offset,
               std::string(
                   "expected messages nested at most 64 deep, found another ") +
                   what);
    return false;
  }
  if (++messages_ > kMaxMessages) {
    error_.set(field.offset, "expected at most 4194304 messages in one file");
    return false;
  }
  ++depth_;
  return true;
}

bool FieldDecoder::expect(const Field& field, WireType type, const char* what) {
  if (field.type == type) return true;
  error_.set(field.offset, std::string("expected ") + what + " (field " +
                               std::to_string(field.number) + ") to be " +
                               toString(type) + ", found " +
                               toString(field.type));
  return false;
}

bool FieldDecoder::text(const Field& field, const char* what,
                        std::string_view& out) {
  if (!expect(field, WireType::kBytes, what)) return false;
  out = field.bytes;
  return true;
}

bool FieldDecoder::integer(const Field& field, const char* what, int64_t& out) {
  if (!expect(field, WireType::kVarint, what)) return false;
  out = static_cast<int64_t>(field.value);
  return true;
}

bool FieldDecoder::integers(const Field& field, const char* what,
                            std::vector<int64_t>& out) {
  if (field.type != WireType::kBytes) {
    if (!expect(field, WireType::kVarint, what)) return false;
    out.push_back(static_cast<int64_t>(field.value));
    return true;
  }
  WireReader reader(field.bytes, field.offset, error_);
  uint64_t value;
  while (reader.nextVarint(value)) out.push_back(static_cast<int64_t>(value));
  return !error_.isSet();
}

}  // namespace partita::onnx
