// Fuzzes the safetensors header reader. Any bytes are refused with a message,
// or read into tensors that tile the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/base/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header = partita::base::ParseSafetensors(file, "input");
  if (!header.ok()) {
    if (header.status().message().empty()) abort();
    return 0;
  }
  uint64_t total = 0;
  for (const auto& [name, entry] : header->tensors) {
    if (entry.offset > size || entry.bytes > size - entry.offset) abort();
    total += entry.bytes;
    if (entry.dtype.has_value() &&
        partita::base::ByteCount(*entry.dtype, entry.shape) !=
            static_cast<int64_t>(entry.bytes))
      abort();
  }
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | data[i];
  if (8 + length + total != size) abort();
  return 0;
}
