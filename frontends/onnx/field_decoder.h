// What all decoders of ONNX messages share: fields of the expected types, and
// the bounds on what one file may hold.
#ifndef PARTITA_FRONTENDS_ONNX_FIELD_DECODER_H_
#define PARTITA_FRONTENDS_ONNX_FIELD_DECODER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "frontends/onnx/wire.h"

namespace partita::onnx {

// One for a whole file, so that its counts are those of the file. Each function
// returns false after an error, its own or an earlier one; `what` names the
// message or the field in messages.
class FieldDecoder {
 public:
  // `error` outlives the decoder.
  explicit FieldDecoder(WireError& error) : error_(error) {}

  // Runs `decode` on each field of the message in `field`, while it returns
  // true.
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
  // Appends a packed field, or one number.
  bool integers(const Field& field, const char* what,
                std::vector<int64_t>& out);

  WireError& error() { return error_; }

 private:
  // Counts a message, and refuses one too many or too deep.
  bool enter(const Field& field, const char* what);

  WireError& error_;
  int depth_ = 0;
  uint64_t messages_ = 0;
};

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_FIELD_DECODER_H_
