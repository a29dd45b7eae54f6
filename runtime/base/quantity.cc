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

std::string FormatSeconds(double seconds) {
  char text[48];
  const double size = seconds < 0 ? -seconds : seconds;
  // Values that would round to 1000 take the next unit.
  if (size >= 0.9995 || size == 0) {
    std::snprintf(text, sizeof(text), "%.3f s", seconds);
    return text;
  }
  const bool milli = size >= 0.9995e-3;
  const double value = seconds * (milli ? 1e3 : 1e6);
  const double digits = value < 0 ? -value : value;
  std::snprintf(text, sizeof(text), "%.*f %s",
                digits >= 99.95   ? 0
                : digits >= 9.995 ? 1
                                  : 2,
                value, milli ? "ms" : "us");
  return text;
}

}  // namespace partita::base
