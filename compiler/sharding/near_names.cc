// Ranks names by edit distance.
#include "compiler/sharding/near_names.h"

#include <algorithm>
#include <set>
#include <utility>

#include "dialects/nn/dialect.h"

namespace partita::sharding {
namespace {

// Edit distance to the whole name, or to the best suffix after a dot.
unsigned distance(llvm::StringRef pattern, llvm::StringRef name) {
  unsigned least = pattern.edit_distance(name);
  while (name.contains('.')) {
    name = name.split('.').second;
    least = std::min(least, pattern.edit_distance(name));
  }
  return least;
}

}  // namespace

std::string nearNames(const std::vector<std::string>& patterns,
                      const std::vector<std::string>& names) {
  std::set<std::pair<unsigned, std::string>> ranked;
  for (const std::string& pattern : patterns) {
    llvm::StringRef plain = pattern;
    plain.consume_back(".*");
    for (const std::string& name : names)
      ranked.insert({distance(plain, name), name});
  }
  constexpr size_t kShown = 3;
  std::vector<std::string> best;
  for (const auto& [unused, name] : ranked)
    if (best.size() < kShown &&
        std::find(best.begin(), best.end(), name) == best.end())
      best.push_back(name);
  std::string text;
  for (const std::string& name : best)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

std::vector<std::string> argumentNames(mlir::func::FuncOp function) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto name =
            function.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr))
      if (!name.empty()) names.push_back(name.str());
  return names;
}

}  // namespace partita::sharding
