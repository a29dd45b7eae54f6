// CRC-32 through zlib.
#include "runtime/base/checksum.h"

#include <zlib.h>

namespace partita::base {

uint32_t Crc32(std::string_view bytes, uint32_t start) {
  // With a null pointer zlib would return its initial value in place of
  // `start`.
  if (bytes.empty()) return start;
  return static_cast<uint32_t>(
      crc32_z(start, reinterpret_cast<const unsigned char*>(bytes.data()),
              bytes.size()));
}

}  // namespace partita::base
