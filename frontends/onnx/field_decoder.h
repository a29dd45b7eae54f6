// Shared by all decoders of ONNX messages: fields of the expected types, and
// limits on the contents of one file.
#ifndef PARTITA_FRONTENDS_ONNX_FIELD_DECODER_H_
#define PARTITA_FRONTENDS_ONNX_FIELD_DECODER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "frontends/onnx/wire.h"

namespace partita::onnx {

// One decoder serves a whole file, so its counts cover the file. Every function
// returns false after an error, its own or an earlier one. `what` is the name
// of the message or field in diagnostics.
class FieldDecoder {
 public:
  // `error` must outlive the decoder.
  explicit FieldDecoder(WireError& error) : error_(error) {}

  // Calls `decode` on each field of the message in `field` until it returns
  // false.
  template <typename Decode>
  bool message(const Field& field, const char* what, Decode decode) {
    if (!enter(field, what)) return false;
    WireReader reader(field.bytes, field.offset, error_);
    Field part;
    while (reader.next(part))
      if (!decode(part)) break;
    --depth_;
    return !error_.isSet();
  }

  bool expect(const Field& field, WireType type, const char* what);
  bool text(const Field& field, const char* what, std::string_view& out);
  bool integer(const Field& field, const char* what, int64_t& out);
  // Appends the numbers of a packed field, or a single number.
  bool integers(const Field& field, const char* what,
                std::vector<int64_t>& out);

  WireError& error() { return error_; }

 private:
  // Counts a message. Fails if there are too many or they nest too deep.
  bool enter(const Field& field, const char* what);

  WireError& error_;
  int depth_ = 0;
  uint64_t messages_ = 0;
};

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_FIELD_DECODER_H_
