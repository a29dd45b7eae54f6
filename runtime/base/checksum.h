// CRC-32 of byte ranges of any size.
#ifndef PARTITA_RUNTIME_BASE_CHECKSUM_H_
#define PARTITA_RUNTIME_BASE_CHECKSUM_H_

#include <cstdint>
#include <string_view>

namespace partita::base {

// The CRC-32 of zlib and PNG. `start` is the checksum of the preceding bytes,
// so that parts can be chained.
uint32_t Crc32(std::string_view bytes, uint32_t start = 0);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_CHECKSUM_H_
