// Protocol-buffer wire format. Every read is checked against the remaining
// bytes.
#include "frontends/onnx/wire.h"

namespace partita::onnx {

const char* toString(WireType type) {
  switch (type) {
    case WireType::kVarint:
      return "varint";
    case WireType::kFixed64:
      return "8-byte";
    case WireType::kBytes:
      return "length-delimited";
    case WireType::kFixed32:
      return "4-byte";
  }
  return "unknown";
}

void WireError::set(uint64_t at, std::string what) {
  if (isSet()) return;
  offset = at;
  message = std::move(what);
}

std::string WireError::str() const {
  return "at byte " + std::to_string(offset) + ": " + message;
}

bool WireReader::fail(const char* what) {
  error_.set(offset_ + position_, what);
  return false;
}

bool WireReader::readVarint(uint64_t& value, const char* what) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (atEnd()) return fail(what);
    uint8_t byte = static_cast<uint8_t>(bytes_[position_]);
    // The tenth byte may contain only the one remaining bit.
    if (shift == 63 && byte > 1)
      return fail("expected a varint of at most 64 bits");
    ++position_;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return fail("expected a varint of at most 10 bytes");
}

bool WireReader::readFixed(unsigned size, uint64_t& value) {
  if (bytes_.size() - position_ < size) {
    return fail(size == 8 ? "expected 8 bytes, found the end"
                          : "expected 4 bytes, found the end");
  }
  value = 0;
  for (unsigned i = 0; i < size; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[position_ + i]))
             << (8 * i);
  }
  position_ += size;
  return true;
}

bool WireReader::nextVarint(uint64_t& value) {
  if (error_.isSet() || atEnd()) return false;
  return readVarint(value, "expected a varint, found the end");
}

bool WireReader::next(Field& field) {
  if (error_.isSet() || atEnd()) return false;
  size_t start = position_;
  uint64_t key;
  if (!readVarint(key, "expected a field key, found the end")) return false;
  uint64_t number = key >> 3;
  if (number == 0 || number >= (uint64_t{1} << 29)) {
    position_ = start;
    return fail("expected a field number from 1 to 536870911");
  }
  field.number = static_cast<uint32_t>(number);
  field.bytes = {};
  field.value = 0;
  field.offset = offset_ + position_;
  switch (key & 7) {
    case 0:
      field.type = WireType::kVarint;
      return readVarint(field.value, "expected a varint, found the end");
    case 1:
      field.type = WireType::kFixed64;
      return readFixed(8, field.value);
    case 5:
      field.type = WireType::kFixed32;
      return readFixed(4, field.value);
    case 2: {
      field.type = WireType::kBytes;
      uint64_t length;
      if (!readVarint(length, "expected a length, found the end")) return false;
      if (length > bytes_.size() - position_) {
        error_.set(offset_ + position_,
                   "expected " + std::to_string(length) + " bytes, found " +
                       std::to_string(bytes_.size() - position_) +
                       ": the file is truncated or corrupt");
        return false;
      }
      field.offset = offset_ + position_;
      field.bytes = bytes_.substr(position_, length);
      position_ += length;
      return true;
    }
    default:
      position_ = start;
      return fail(
          "expected wire type 0, 1, 2 or 5: not a protocol buffer, or corrupt");
  }
}

}  // namespace partita::onnx
