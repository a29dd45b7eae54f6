// Parses scalars: numbers, sizes in bytes, axes, meshes.
#include "compiler/plan/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <locale>
#include <sstream>

#include "compiler/plan/plan.h"

namespace partita::plan {
namespace {

using absl::InvalidArgumentError;

constexpr int64_t kMostDevices = int64_t{1} << 24;

// Edit distance: 2 per letter that is wrong, missing or swapped with its
// neighbour, 1 per letter of the wrong case.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1,
                                        std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = 2 * (i + j);
        continue;
      }
      const unsigned char x = a[i - 1], y = b[j - 1];
      const size_t change = x == y                               ? 0
                            : std::tolower(x) == std::tolower(y) ? 1
                                                                 : 2;
      cost[i][j] = std::min({cost[i - 1][j] + 2, cost[i][j - 1] + 2,
                             cost[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 2] == b[j - 1] && a[i - 1] == b[j - 2])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 2);
    }
  return cost[a.size()][b.size()];
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::vector<std::string> AxisNames(const core::Mesh& mesh) {
  std::vector<std::string> names;
  for (const core::Axis& axis : mesh.axes) names.push_back(axis.name);
  return names;
}

}  // namespace

std::string Quote(const std::string& text) {
  std::string quoted = "'";
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == 60 && text.size() > 64) {
      quoted += "...";
      break;
    }
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f) {
      char hex[8];
      std::snprintf(hex, sizeof(hex), "\\x%02x", c);
      quoted += hex;
    } else {
      quoted += text[i];
    }
  }
  return quoted + "'";
}

std::string Nearest(const std::string& found,
                    const std::vector<std::string>& candidates) {
  std::string best;
  // A third of the letters may be wrong, up to two. In a text of one or two
  // letters only the case of one may be wrong.
  size_t least = std::max<size_t>(1, std::min<size_t>(4, 2 * found.size() / 3));
  if (found.size() > 64) return "";
  for (const std::string& candidate : candidates) {
    const size_t distance = Distance(found, candidate);
    if (distance > least || (distance == least && !best.empty())) continue;
    best = candidate;
    least = distance;
  }
  return best;
}

std::string Suggest(const std::string& found,
                    const std::vector<std::string>& candidates) {
  const std::string best = Nearest(found, candidates);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string Trim(const std::string& text) {
  const char* spaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(spaces);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(spaces) - begin + 1);
}

std::vector<std::string> SplitOutside(const std::string& text, char separator) {
  std::vector<std::string> parts = {""};
  int depth = 0;
  for (char c : text) {
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c == separator && depth <= 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool IsIdentifier(const std::string& text) {
  if (text.empty() || text.size() > 64 || IsDigit(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) || c == '_');
  });
}

absl::StatusOr<int64_t> ParseCount(const std::string& text) {
  if (text.empty() || text.size() > 16 ||
      !std::all_of(text.begin(), text.end(), IsDigit) ||
      std::stoll(text) > int64_t{1} << 53)
    return InvalidArgumentError("expected a whole number, found " +
                                Quote(text));
  return std::stoll(text);
}

absl::StatusOr<double> ParseFactor(const std::string& text) {
  const bool is_plain =
      !text.empty() && text.size() <= 16 && IsDigit(text.front()) &&
      IsDigit(text.back()) && std::count(text.begin(), text.end(), '.') <= 1 &&
      std::all_of(text.begin(), text.end(),
                  [](char c) { return IsDigit(c) || c == '.'; });
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  double factor = 0;
  if (is_plain) stream >> factor;
  if (factor < 1 || factor > 1e6)
    return InvalidArgumentError("expected a number from 1 to 1000000");
  return factor;
}

std::string FactorText(double factor) {
  for (int digits = 1;; ++digits) {
    std::ostringstream stream;
    stream.imbue(std::locale::classic());
    stream << std::setprecision(digits) << factor;
    const absl::StatusOr<double> read = ParseFactor(stream.str());
    if (digits >= 15 || (read.ok() && *read == factor)) return stream.str();
  }
}

absl::StatusOr<int64_t> ParseBytes(const std::string& text) {
  const std::pair<const char*, double> units[] = {{"B", 1},
                                                  {"kB", 1e3},
                                                  {"KB", 1e3},
                                                  {"MB", 1e6},
                                                  {"GB", 1e9},
                                                  {"TB", 1e12},
                                                  {"KiB", 1024.0},
                                                  {"MiB", 1024.0 * 1024},
                                                  {"GiB", 1073741824.0},
                                                  {"TiB", 1073741824.0 * 1024}};
  absl::Status refusal = InvalidArgumentError(
      "expected a number and a unit of B, kB, MB, GB, TB, KiB, MiB, GiB or "
      "TiB, such as '78 GB', found " +
      Quote(text));
  size_t end = 0, dots = 0;
  while (end < text.size() && (IsDigit(text[end]) || text[end] == '.'))
    dots += text[end++] == '.';
  if (end == 0 || end > 18 || dots > 1 || text[0] == '.' ||
      text[end - 1] == '.')
    return refusal;
  const double number = std::strtod(text.substr(0, end).c_str(), nullptr);
  const std::string unit = Trim(text.substr(end));
  for (const auto& [name, factor] : units)
    if (unit == name && number * factor <= 9e15)
      return std::llround(number * factor);
  return refusal;
}

absl::Status CheckAxis(const core::AxisRef& axis, const core::Mesh& mesh) {
  if (axis.axis < 0 || axis.axis >= static_cast<int>(mesh.axes.size()))
    return InvalidArgumentError("expected an axis of the mesh, found number " +
                                std::to_string(axis.axis));
  const core::Axis& whole = mesh.axes[axis.axis];
  if (axis.pre == 1 && axis.size == whole.size) return absl::OkStatus();
  // Divides step by step because the product could overflow.
  if (axis.pre >= 1 && axis.size >= 2 && whole.size % axis.pre == 0 &&
      whole.size / axis.pre % axis.size == 0)
    return absl::OkStatus();
  return InvalidArgumentError(
      "expected a part (m)k of axis '" + whole.name + "' where k is at least " +
      "2 and m * k divides its " + std::to_string(whole.size) +
      " positions, found (" + std::to_string(axis.pre) + ")" +
      std::to_string(axis.size));
}

absl::StatusOr<core::AxisRef> ParseAxis(const std::string& text,
                                        const core::Mesh& mesh) {
  const std::string word = Trim(text);
  const size_t colon = word.find(':');
  const std::string name = word.substr(0, colon);
  const int axis = mesh.Find(name);
  if (axis < 0) {
    if (mesh.axes.empty())
      return InvalidArgumentError("expected a mesh that has axis " +
                                  Quote(name) + ", found one without axes");
    return InvalidArgumentError("expected an axis of the mesh (" +
                                Join(AxisNames(mesh)) + "), found " +
                                Quote(name) + Suggest(name, AxisNames(mesh)));
  }
  if (colon == std::string::npos) return core::WholeAxis(mesh, axis);
  const size_t close = word.find(')');
  if (colon + 1 < word.size() && word[colon + 1] == '(' &&
      close != std::string::npos) {
    const absl::StatusOr<int64_t> pre =
        ParseCount(word.substr(colon + 2, close - colon - 2));
    const absl::StatusOr<int64_t> size = ParseCount(word.substr(close + 1));
    if (pre.ok() && size.ok()) {
      const core::AxisRef part = {axis, *pre, *size};
      if (absl::Status status = CheckAxis(part, mesh); !status.ok())
        return status;
      return part;
    }
  }
  return InvalidArgumentError(
      "expected an axis or a part of one, as tensor or tensor:(1)2, found " +
      Quote(word));
}

absl::Status CheckUnused(const core::Mesh& mesh, const core::AxisRef& axis,
                         const std::vector<core::AxisRef>& others,
                         const std::string& what) {
  for (const core::AxisRef& other : others)
    if (core::Overlap(axis, other))
      return InvalidArgumentError(
          "expected each axis once in " + what + ", found '" +
          core::ToString(mesh, axis) + "'" +
          (axis == other ? " twice"
                         : " and '" + core::ToString(mesh, other) + "'"));
  return absl::OkStatus();
}

absl::Status CheckMesh(const core::Mesh& mesh) {
  int64_t devices = 1;
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    const core::Axis& axis = mesh.axes[i];
    if (!IsIdentifier(axis.name))
      return InvalidArgumentError(
          "expected an axis named by letters, digits and _, found " +
          Quote(axis.name));
    if (mesh.Find(axis.name) != static_cast<int>(i))
      return InvalidArgumentError("expected axes of different names, found '" +
                                  axis.name + "' twice");
    if (axis.size < 1)
      return InvalidArgumentError("expected axis '" + axis.name +
                                  "' to have at least 1 position, found " +
                                  std::to_string(axis.size));
    if (axis.size > kMostDevices / devices)
      return InvalidArgumentError("expected a mesh of at most " +
                                  std::to_string(kMostDevices) +
                                  " devices, found more");
    devices *= axis.size;
  }
  if (mesh.axes.size() > 16)
    return InvalidArgumentError("expected at most 16 axes, found " +
                                std::to_string(mesh.axes.size()));
  if (mesh.device_ids.empty()) return absl::OkStatus();
  const auto expected = "expected device_ids to have each of 0 to " +
                        std::to_string(devices - 1) + " once, found ";
  if (static_cast<int64_t>(mesh.device_ids.size()) != devices)
    return InvalidArgumentError(
        expected + std::to_string(mesh.device_ids.size()) + " numbers");
  std::vector<bool> seen(devices);
  for (int64_t id : mesh.device_ids) {
    if (id < 0 || id >= devices)
      return InvalidArgumentError(expected + std::to_string(id));
    if (seen[id])
      return InvalidArgumentError(expected + std::to_string(id) + " twice");
    seen[id] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckDimensionName(const std::string& text) {
  // D, the sequence of layers, is not a dimension of any tensor.
  std::vector<std::string> names = KnownDimensions();
  names.erase(std::remove(names.begin(), names.end(), "D"), names.end());
  if (std::find(names.begin(), names.end(), text) != names.end())
    return absl::OkStatus();
  return InvalidArgumentError("expected the name of a dimension of tensors, " +
                              Join(names) + ", found " + Quote(text) +
                              Suggest(text, names));
}

std::string GigaBytes(double bytes) {
  char text[32];
  // %.3g would print 999.5 MB and more as 1e+03.
  if (bytes < 0.9995e9)
    std::snprintf(text, sizeof(text), "%.3g MB", bytes / 1e6);
  else
    std::snprintf(text, sizeof(text), "%.1f GB", bytes / 1e9);
  return text;
}

std::string GigaBytesUp(double bytes) {
  // The value of the last digit printed.
  const double step =
      bytes < 0.9995e9
          ? std::pow(10, std::floor(std::log10(std::max(bytes, 1.0))) - 2)
          : 0.1e9;
  return GigaBytes(std::ceil(bytes / step) * step);
}

const std::vector<std::string>& KnownDimensions() {
  static const auto* const names = new std::vector<std::string>{
      "B", "D", "M", "N", "E", "L", "V", "H", "W", "X"};
  return *names;
}

}  // namespace partita::plan
