// Bounded reader of the protocol-buffer wire format. It never reads outside of
// the given bytes and does not own them.
//
// A message is a sequence of fields. Each has a varint key (field number * 8 +
// wire type) and a value: a varint (type 0), 8 or 4 little-endian bytes (types
// 1 and 5), or a varint length and that many bytes (type 2). Groups (3, 4) are
// refused; ONNX files have none. Offsets are relative to the file.
#ifndef PARTITA_FRONTENDS_ONNX_WIRE_H_
#define PARTITA_FRONTENDS_ONNX_WIRE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace partita::onnx {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kFixed32 = 5
};

// "varint", "length-delimited", ...
const char* toString(WireType type);

struct Field {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;      // for kVarint, kFixed64 and kFixed32
  std::string_view bytes;  // for kBytes
  uint64_t offset = 0;     // offset of the value in the file
};

// The first error in a file, and its offset.
struct WireError {
  uint64_t offset = 0;
  std::string message;  // empty: no error

  bool isSet() const { return !message.empty(); }
  void set(uint64_t at, std::string what);
  // E.g. "at byte 17: expected ...".
  std::string str() const;
};

class WireReader {
 public:
  // `offset` is the position of `bytes` in the file. `bytes` and `error` must
  // outlive the reader.
  WireReader(std::string_view bytes, uint64_t offset, WireError& error)
      : bytes_(bytes), offset_(offset), error_(error) {}

  // Reads the next field. Returns false at the end of the message and after an
  // error.
  bool next(Field& field);
  // Reads one varint. Returns false at the end and after an error. (A packed
  // field is a sequence of varints.)
  bool nextVarint(uint64_t& value);

  bool atEnd() const { return position_ == bytes_.size(); }

 private:
  bool fail(const char* what);
  bool readVarint(uint64_t& value, const char* what);
  bool readFixed(unsigned size, uint64_t& value);

  std::string_view bytes_;
  uint64_t offset_;
  size_t position_ = 0;
  WireError& error_;
};

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_WIRE_H_
