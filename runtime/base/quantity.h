// Formats large numbers for readers.
#ifndef PARTITA_RUNTIME_BASE_QUANTITY_H_
#define PARTITA_RUNTIME_BASE_QUANTITY_H_

#include <cstdint>
#include <string>

namespace partita::base {

// "832 B", "45.1 KB", "1.2 GB": one decimal, in powers of 1000.
std::string FormatBytes(int64_t bytes);

// "832", "30.6 thousand", "124.4 million".
std::string FormatCount(int64_t count);

// "14.341 s". Below one second, three significant digits: "129 ms", "1.03 ms",
// "70.2 us".
std::string FormatSeconds(double seconds);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_QUANTITY_H_
