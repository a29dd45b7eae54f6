// Picks the unit with one to three digits before the point.
#include "runtime/base/quantity.h"

#include <cstdio>

namespace partita::base {
namespace {

std::string Format(int64_t number, const char* const (&units)[5]) {
  // A number that would round to 1000.0 belongs to the next unit.
  constexpr double kLimit = 999.95;
  double value = static_cast<double>(number);
  int unit = 0;
  for (; unit < 4 && (value >= kLimit || value <= -kLimit); ++unit)
    value /= 1000;
  char text[48];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f%s" : "%.1f%s", value,
                units[unit]);
  return text;
}

}  // namespace

std::string FormatBytes(int64_t bytes) {
  return Format(bytes, {" B", " KB", " MB", " GB", " TB"});
}

std::string FormatCount(int64_t count) {
  return Format(count, {"", " thousand", " million", " billion", " trillion"});
}

}  // namespace partita::base
