// Searches for directives, and checks that braces match.
#include "runtime/cuda/recording/ptx.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace partita::cuda::recording {
namespace {

// Bytes of a parameter: 8 for ".param .u64 .ptr .align 1 a", 24 for ".param
// .align 8 .b8 a[24]".
size_t ParameterBytes(const std::string& text) {
  const size_t array = text.find('[');
  if (array != std::string::npos)
    return std::strtoul(text.c_str() + array + 1, nullptr, 10);
  for (const char* wide : {".u64", ".b64", ".s64", ".f64"})
    if (text.find(wide) != std::string::npos) return 8;
  return 4;
}

std::vector<size_t> ParseParameters(const std::string& list) {
  std::vector<size_t> bytes;
  size_t at = 0;
  while ((at = list.find(".param", at)) != std::string::npos) {
    const size_t end = std::min(list.find(',', at), list.size());
    bytes.push_back(ParameterBytes(list.substr(at, end - at)));
    at = end;
  }
  return bytes;
}

}  // namespace

bool ParsePtx(const std::string& text, Ptx& ptx, std::string& error) {
  const auto fail = [&](const char* message) {
    error = std::string("ptxas fatal : ") + message;
    return false;
  };
  const size_t target = text.find(".target sm_");
  if (text.find(".version ") == std::string::npos ||
      target == std::string::npos)
    return fail("Missing .version or .target directive");
  ptx.target = std::atoi(text.c_str() + target + 11);
  if (std::count(text.begin(), text.end(), '{') !=
          std::count(text.begin(), text.end(), '}') ||
      std::count(text.begin(), text.end(), '(') !=
          std::count(text.begin(), text.end(), ')') ||
      text.find(".entry ") == std::string::npos)
    return fail("Parsing error near '': syntax error");
  size_t at = 0;
  while ((at = text.find(".entry ", at)) != std::string::npos) {
    const size_t begin = at + 7;
    const size_t open = text.find('(', begin);
    const size_t close = text.find(')', begin);
    std::string name = text.substr(begin, open - begin);
    name.erase(std::remove_if(name.begin(), name.end(),
                              [](unsigned char c) { return std::isspace(c); }),
               name.end());
    ptx.kernels[name] = ParseParameters(text.substr(open, close - open));
    at = close;
  }
  return true;
}

}  // namespace partita::cuda::recording
