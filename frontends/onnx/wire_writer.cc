// Writer of the protocol-buffer wire format.
#include "frontends/onnx/wire_writer.h"

namespace partita::onnx {

void WireWriter::raw(uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    encoded_ += static_cast<char>(value | 0x80);
  encoded_ += static_cast<char>(value);
}

void WireWriter::key(uint32_t number, WireType type) {
  raw(uint64_t{number} << 3 | static_cast<uint64_t>(type));
}

void WireWriter::varint(uint32_t number, uint64_t value) {
  key(number, WireType::kVarint);
  raw(value);
}

void WireWriter::bytes(uint32_t number, std::string_view value) {
  key(number, WireType::kBytes);
  raw(value.size());
  encoded_ += value;
}

void WireWriter::copy(const Field& field) {
  switch (field.type) {
    case WireType::kVarint:
      return varint(field.number, field.value);
    case WireType::kBytes:
      return bytes(field.number, field.bytes);
    case WireType::kFixed32:
    case WireType::kFixed64: {
      key(field.number, field.type);
      const int size = field.type == WireType::kFixed32 ? 4 : 8;
      for (int i = 0; i < size; ++i)
        encoded_ += static_cast<char>(field.value >> (8 * i));
      return;
    }
  }
}

}  // namespace partita::onnx
