// Compares the instruction sets that the code was compiled for with the
// machine's.
#include "runtime/cpu/features.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace partita::cpu {
namespace {

struct Spelling {
  const char* llvm;
  const char* linux_flag;
};
// LLVM's and Linux's names of the instruction sets that a compiler uses
// unasked.
constexpr Spelling kSpellings[] = {
    {"sse2", "sse2"},
    {"sse3", "pni"},
    {"ssse3", "ssse3"},
    {"sse4.1", "sse4_1"},
    {"sse4.2", "sse4_2"},
    {"popcnt", "popcnt"},
    {"avx", "avx"},
    {"avx2", "avx2"},
    {"fma", "fma"},
    {"f16c", "f16c"},
    {"bmi", "bmi1"},
    {"bmi2", "bmi2"},
    {"lzcnt", "abm"},
    {"movbe", "movbe"},
    {"avxvnni", "avx_vnni"},
    {"avx512f", "avx512f"},
    {"avx512cd", "avx512cd"},
    {"avx512dq", "avx512dq"},
    {"avx512bw", "avx512bw"},
    {"avx512vl", "avx512vl"},
    {"avx512ifma", "avx512ifma"},
    {"avx512vbmi", "avx512vbmi"},
    {"avx512vbmi2", "avx512_vbmi2"},
    {"avx512vnni", "avx512_vnni"},
    {"avx512bitalg", "avx512_bitalg"},
    {"avx512vpopcntdq", "avx512_vpopcntdq"},
    {"avx512bf16", "avx512_bf16"},
    {"avx512fp16", "avx512_fp16"},
    {"avx512vp2intersect", "avx512_vp2intersect"},
    {"amx-tile", "amx_tile"},
    {"amx-bf16", "amx_bf16"},
    {"amx-int8", "amx_int8"},
    {"gfni", "gfni"},
    {"vaes", "vaes"},
    {"vpclmulqdq", "vpclmulqdq"},
    {"adx", "adx"},
};

}  // namespace

std::set<std::string> HostFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(
        line.substr(std::min(line.size(), line.find(':') + 1)));
    std::set<std::string> flags;
    for (std::string word; words >> word;) flags.insert(word);
    return flags;
  }
  return {};
}

absl::Status CheckFeatures(const std::string& features,
                           const std::set<std::string>& flags) {
  std::vector<std::string> missing;
  for (const std::string& feature : std::vector<std::string>(
           absl::StrSplit(features, ',', absl::SkipEmpty()))) {
    if (feature[0] != '+') continue;
    for (const Spelling& spelling : kSpellings) {
      if (feature.substr(1) == spelling.llvm &&
          flags.count(spelling.linux_flag) == 0)
        missing.push_back(spelling.llvm);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the model was compiled for a processor with ",
                   absl::StrJoin(missing, ", "),
                   ", which this one lacks; compile it on this machine or for "
                   "an older processor"));
}

}  // namespace partita::cpu
