// A stream that keeps its text and hands out each complete line.
#ifndef PARTITA_COMPILER_API_LINE_STREAM_H_
#define PARTITA_COMPILER_API_LINE_STREAM_H_

#include <string>

#include "compiler/api/partita_compiler.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::api {

// Appends to `text`, which must outlive the stream. An unfinished last line is
// handed out when the stream is destroyed.
class LineStream : public llvm::raw_ostream {
 public:
  // `on_line` may be null.
  LineStream(std::string& text, partita_message_function on_line, void* data);
  ~LineStream() override;

 private:
  void write_impl(const char* pointer, size_t size) override;
  uint64_t current_pos() const override { return text_.size(); }
  void handOut(size_t end);

  std::string& text_;
  partita_message_function on_line_;
  void* data_;
  size_t begin_ = 0;  // of the first line that was not handed out
};

}  // namespace partita::api

#endif  // PARTITA_COMPILER_API_LINE_STREAM_H_
