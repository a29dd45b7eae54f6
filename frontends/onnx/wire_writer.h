// Encodes messages field by field, in the format that WireReader reads.
#ifndef PARTITA_FRONTENDS_ONNX_WIRE_WRITER_H_
#define PARTITA_FRONTENDS_ONNX_WIRE_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "frontends/onnx/wire.h"

namespace partita::onnx {

class WireWriter {
 public:
  void varint(uint32_t number, uint64_t value);
  void bytes(uint32_t number, std::string_view value);
  // Copies a field that WireReader returned.
  void copy(const Field& field);

  const std::string& encoded() const { return encoded_; }

 private:
  void key(uint32_t number, WireType type);
  void raw(uint64_t value);

  std::string encoded_;
};

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_WIRE_WRITER_H_
