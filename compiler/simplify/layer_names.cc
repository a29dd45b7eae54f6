// Finds the word that the names of two layers' operations number.
#include "compiler/simplify/layer_names.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace partita::simplify {
namespace {

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> words(1);
  for (char c : path) {
    if (c == '/' || c == '.') {
      words.emplace_back();
    } else {
      // Replace characters that a symbol cannot contain.
      words.back() += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
  }
  words.erase(std::remove(words.begin(), words.end(), ""), words.end());
  return words;
}

bool isNumber(const std::string& word) {
  return std::all_of(word.begin(), word.end(),
                     [](unsigned char c) { return std::isdigit(c); });
}

bool isGeneral(const std::string& word) {
  return word == "layer" || word == "layers" || word == "block" ||
         word == "blocks";
}

// Returns the word that the two paths number, prefixed by the word before it if
// it is general; empty if they have no number there.
std::string countedBy(const std::string& first, const std::string& second) {
  const std::vector<std::string> a = split(first), b = split(second);
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x == a.begin() || x == a.end() || y == b.end() || !isNumber(*x) ||
      !isNumber(*y))
    return "";
  const std::string counted = *(x - 1);
  if (isNumber(counted)) return "";
  auto before = x - 1;
  // Exporters repeat the name of a list: "/blocks/blocks.0".
  while (before != a.begin() && *(before - 1) == counted) --before;
  if (!isGeneral(counted) || before == a.begin()) return counted;
  std::string name = *--before + "_" + counted;
  if (isNumber(*before) && before != a.begin()) name = *--before + "_" + name;
  return name;
}

}  // namespace

std::string layerName(
    const std::vector<std::pair<std::string, std::string>>& names) {
  std::map<std::string, int> votes;
  for (const auto& [first, second] : names) {
    const std::string name = countedBy(first, second);
    if (!name.empty() &&
        !std::isdigit(static_cast<unsigned char>(name.front())))
      ++votes[name];
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == votes.end() ? "layer" : most->first;
}

}  // namespace partita::simplify
