// Parses the names of targets. No other file compares their text.
#include "runtime/program/target.h"

#include <algorithm>
#include <iterator>

namespace partita::program {
namespace {

// Kinds of targets that are GPUs.
constexpr std::string_view kGpuKinds[] = {kCudaTarget};

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsKind(std::string_view text) {
  return !text.empty() && IsLower(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsLower(c) || IsDigit(c) || c == '_';
         });
}

bool IsArchitecture(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return IsLower(c) || IsUpper(c) || IsDigit(c) || c == '_' || c == '-' ||
           c == '+' || c == '.';
  });
}

}  // namespace

std::optional<Target> ParseTarget(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (!IsKind(kind)) return std::nullopt;
  if (colon == std::string_view::npos) return Target{std::string(kind), ""};
  const std::string_view architecture = text.substr(colon + 1);
  if (!IsArchitecture(architecture)) return std::nullopt;
  return Target{std::string(kind), std::string(architecture)};
}

std::string TargetText(const Target& target) {
  return target.architecture.empty() ? target.kind
                                     : target.kind + ":" + target.architecture;
}

bool IsGpu(const Target& target) {
  return std::find(std::begin(kGpuKinds), std::end(kGpuKinds), target.kind) !=
         std::end(kGpuKinds);
}

bool IsGpuTarget(std::string_view text) {
  const std::optional<Target> target = ParseTarget(text);
  return target && IsGpu(*target);
}

}  // namespace partita::program
