// Headers of safetensors files: names, types, shapes and places of tensors.
//
// The file is a 64-bit little-endian length N, N bytes of JSON, and the
// tensors' bytes. The JSON maps each name to
// {"dtype", "shape", "data_offsets": [begin, end)} with offsets from the end of
// the JSON; "__metadata__" maps strings to strings. Tensors lie row-major and
// little-endian, in any order, without holes or overlaps.
#ifndef PARTITA_RUNTIME_BASE_SAFETENSORS_H_
#define PARTITA_RUNTIME_BASE_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/base/mapped_file.h"

namespace partita::base {

struct SafetensorsEntry {
  std::string stored;  // as in the file: "F32", "BF16", "F8_E4M3" ...
  // Empty for types that Partita does not support (complex numbers, floats of 6
  // bits and less, and of 8 bits other than e4m3 and e5m2).
  std::optional<DType> dtype;
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // from the start of the file
  uint64_t bytes = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// `file` is the whole file, of which only the header is read; `path` is for
// messages. InvalidArgument says what was expected and found, and where.
absl::StatusOr<SafetensorsHeader> ParseSafetensors(std::string_view file,
                                                   const std::string& path);

// A file on disk, mapped. Opening a file of any size reads its header only.
class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const SafetensorsHeader& header() const { return header_; }
  const std::string& path() const { return file_.path(); }
  // Valid as long as this object lives.
  std::string_view BytesOf(const SafetensorsEntry& entry) const {
    return file_.bytes().substr(entry.offset, entry.bytes);
  }

 private:
  MappedFile file_;
  SafetensorsHeader header_;
};

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_SAFETENSORS_H_
