// Parses command lines with tables of flags.
#ifndef PARTITA_RUNTIME_TOOLS_FLAGS_H_
#define PARTITA_RUNTIME_TOOLS_FLAGS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace partita::tools {

// Parses a flag's value. InvalidArgument says what was expected and found.
using FlagSetter = std::function<absl::Status(const std::string&)>;

struct Flags {
  std::map<std::string, FlagSetter> values;  // --name VALUE, --name=VALUE
  std::map<std::string, bool*> switches;     // --name
};

// Stores the only positional argument in `model`. InvalidArgument names the
// wrong argument.
absl::Status ParseFlags(const std::vector<std::string>& arguments,
                        const Flags& flags, std::string& model);

// Returns a setter for a non-empty value. Targets of setters must outlive them.
FlagSetter SetString(std::string& target);
// Parses a number from `low` to `high`, both allowed.
absl::StatusOr<int64_t> ParseCount(const std::string& value, int64_t low,
                                   int64_t high);
absl::StatusOr<double> ParseNumber(const std::string& value, double low,
                                   double high, const std::string& expected);

// Sets an integer, or an optional one, to a whole number of at least `minimum`
// and at most `maximum` (default: what the type holds).
template <typename Target>
FlagSetter SetCount(Target& target, int64_t minimum,
                    int64_t maximum = std::is_same_v<Target, int64_t>
                                          ? std::numeric_limits<int64_t>::max()
                                          : std::numeric_limits<int>::max()) {
  return [&target, minimum, maximum](const std::string& value) {
    constexpr bool kWide = std::is_same_v<Target, int64_t>;
    const auto number = ParseCount(value, minimum, maximum);
    if (!number.ok()) return number.status();
    if constexpr (kWide) {
      target = *number;
    } else {
      target = static_cast<int>(*number);
    }
    return absl::OkStatus();
  };
}

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_FLAGS_H_
