// Compares paths word by word.
#include "compiler/core/module_paths.h"

#include <algorithm>
#include <cctype>

namespace partita::core {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == separator)
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

bool StartsWith(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

}  // namespace

std::vector<std::string> WordsOf(const std::string& path) {
  return path.empty() ? std::vector<std::string>() : Split(path, '.');
}

std::string JoinWords(const std::vector<std::string>& words, size_t begin,
                      size_t end) {
  std::string path;
  for (size_t i = begin; i < end; ++i)
    path += (i > begin ? "." : "") + words[i];
  return path;
}

bool IsNumber(const std::string& word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(),
                     [](unsigned char c) { return std::isdigit(c); });
}

std::string ModuleOf(const std::string& name) {
  if (name.find('/') == std::string::npos)
    return name.find("::") == std::string::npos ? name : "";
  std::vector<std::string> kept;
  std::vector<std::string> words = Split(name, '/');
  words.pop_back();  // the operation
  for (const std::string& word : words) {
    if (word.empty()) continue;
    // Exporters repeat the name of a list: "/blocks/blocks.0".
    if (!kept.empty() && StartsWith(word, kept.back() + ".")) kept.pop_back();
    kept.push_back(word);
  }
  return JoinWords(kept, 0, kept.size());
}

std::string CommonModule(const std::string& a, const std::string& b) {
  const std::vector<std::string> left = WordsOf(a), right = WordsOf(b);
  const size_t most = std::min(left.size(), right.size());
  size_t common = 0;
  while (common < most && left[common] == right[common]) ++common;
  return JoinWords(left, 0, common);
}

std::string CommonPattern(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return "";
  std::vector<std::string> left = WordsOf(a);
  const std::vector<std::string> right = WordsOf(b);
  if (left.size() == right.size()) {
    for (size_t i = 0; i < left.size(); ++i)
      if (left[i] != right[i]) left[i] = "*";
  } else {
    const size_t most = std::min(left.size(), right.size());
    size_t first = 0, last = 0;
    while (first < most && left[first] == right[first]) ++first;
    while (first + last < most &&
           left[left.size() - 1 - last] == right[right.size() - 1 - last])
      ++last;
    // The star replaces at least one word of both paths.
    if (first + last == most) --(first > 0 ? first : last);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(first),
               left.end() - static_cast<std::ptrdiff_t>(last));
    left.insert(left.begin() + static_cast<std::ptrdiff_t>(first), "*");
  }
  // One star is enough for several words.
  left.erase(std::unique(left.begin(), left.end(),
                         [](const std::string& x, const std::string& y) {
                           return x == "*" && y == "*";
                         }),
             left.end());
  return JoinWords(left, 0, left.size());
}

}  // namespace partita::core
