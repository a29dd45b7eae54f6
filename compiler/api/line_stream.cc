// Unbuffered, so that lines are handed out when they are written.
#include "compiler/api/line_stream.h"

namespace partita::api {

LineStream::LineStream(std::string& text, partita_message_function on_line,
                       void* data)
    : llvm::raw_ostream(/*unbuffered=*/true),
      text_(text),
      on_line_(on_line),
      data_(data),
      begin_(text.size()) {}

LineStream::~LineStream() {
  if (begin_ < text_.size()) handOut(text_.size());
}

void LineStream::write_impl(const char* pointer, size_t size) {
  text_.append(pointer, size);
  for (size_t end = text_.find('\n', begin_); end != std::string::npos;
       end = text_.find('\n', begin_)) {
    handOut(end);
    begin_ = end + 1;
  }
}

void LineStream::handOut(size_t end) {
  if (on_line_ != nullptr)
    on_line_(text_.substr(begin_, end - begin_).c_str(), data_);
}

}  // namespace partita::api
