// Parses arguments in one loop.
#include "runtime/tools/flags.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace partita::tools {
namespace {

absl::Status Wrong(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

}  // namespace

FlagSetter SetString(std::string& target) {
  return [&target](const std::string& value) {
    target = value;
    return value.empty() ? Wrong("expected a value, found nothing")
                         : absl::OkStatus();
  };
}

absl::StatusOr<int64_t> ParseCount(const std::string& value, int64_t low,
                                   int64_t high) {
  int64_t number;
  if (absl::SimpleAtoi(value, &number) && number >= low && number <= high)
    return number;
  const bool has_limit = high < std::numeric_limits<int32_t>::max();
  return Wrong(
      absl::StrCat("expected a whole number of at least ", low,
                   has_limit ? absl::StrCat(" and at most ", high) : "",
                   ", found '", value, "'"));
}

absl::StatusOr<double> ParseNumber(const std::string& value, double low,
                                   double high, const std::string& expected) {
  double number;
  // NaN fails both comparisons.
  if (absl::SimpleAtod(value, &number) && number >= low && number <= high)
    return number;
  return Wrong(absl::StrCat("expected ", expected, ", found '", value, "'"));
}

absl::Status ParseFlags(const std::vector<std::string>& arguments,
                        const Flags& flags, std::string& model) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.empty() || argument[0] != '-') {
      if (!model.empty())
        return Wrong(absl::StrCat("expected one model, found '", model,
                                  "' and '", argument, "'"));
      model = argument;
      continue;
    }
    if (const auto found = flags.switches.find(argument);
        found != flags.switches.end()) {
      *found->second = true;
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const auto found = flags.values.find(flag);
    if (found == flags.values.end())
      return Wrong(absl::StrCat("unknown option '", argument, "'"));
    if (equals == std::string::npos && i + 1 == arguments.size())
      return Wrong(absl::StrCat(flag, ": expected a value, found nothing"));
    const absl::Status status = found->second(
        equals == std::string::npos ? arguments[++i]
                                    : argument.substr(equals + 1));
    if (!status.ok()) return Wrong(absl::StrCat(flag, ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace partita::tools
