// Names are paths in a tree, which is walked from the root.
#include "compiler/planner/layers/layer_names.h"

#include <algorithm>

namespace partita::planner {
namespace {

std::vector<std::string> SplitWords(const std::string& path) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    words.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool IsNumber(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

// Compares numbers by value, other words as text.
bool ComesFirst(const std::string& a, const std::string& b) {
  if (IsNumber(a) && IsNumber(b) && a.size() != b.size())
    return a.size() < b.size();
  return a < b;
}

// Merges patterns that differ only in one word that is a number.
void JoinNumbers(std::vector<std::string>& patterns, const std::string& before,
                 const std::string& after, std::vector<std::string> numbers) {
  if (numbers.empty()) return;
  std::sort(numbers.begin(), numbers.end(), ComesFirst);
  std::string text = before;
  if (numbers.size() == 1) {
    text += numbers[0];
  } else {
    for (size_t i = 0; i < numbers.size(); ++i)
      text += (i == 0 ? "{" : ",") + numbers[i];
    text += "}";
  }
  patterns.push_back(text + after);
}

struct Scope {
  std::map<std::string, Scope> parts;
  int layers = 0, wanted = 0;
};

void AddTo(Scope& scope, const std::string& layer, bool wanted) {
  Scope* at = &scope;
  for (const std::string& word : SplitWords(layer)) {
    at = &at->parts[word];
    ++at->layers;
    at->wanted += wanted;
  }
}

void AddPatterns(const Scope& scope, const std::string& before,
                 std::vector<std::string>& patterns) {
  std::vector<std::string> whole, leaves;
  for (const auto& [word, part] : scope.parts) {
    if (part.wanted == part.layers && IsNumber(word))
      (part.parts.empty() ? leaves : whole).push_back(word);
    else if (part.wanted == part.layers)
      patterns.push_back(before + word + (part.parts.empty() ? "" : ".*"));
    else if (part.wanted > 0)
      AddPatterns(part, before + word + ".", patterns);
  }
  JoinNumbers(patterns, before, ".*", whole);
  JoinNumbers(patterns, before, "", leaves);
}

}  // namespace

bool LayerNames::Node::IsList() const {
  return !parts.empty() &&
         std::all_of(parts.begin(), parts.end(),
                     [](const auto& part) { return IsNumber(part.first); }) &&
         std::any_of(parts.begin(), parts.end(), [](const auto& part) {
           return !part.second.parts.empty();
         });
}

bool LayerNames::Node::HoldsList() const {
  return IsList() ||
         std::any_of(parts.begin(), parts.end(),
                     [](const auto& part) { return part.second.HoldsList(); });
}

void LayerNames::Add(const std::string& module) {
  Node* at = &root_;
  for (const std::string& word : SplitWords(module)) at = &at->parts[word];
}

std::string LayerNames::LayerOf(const std::string& module) const {
  const Node* at = &root_;
  std::string layer;
  // The root is a module too, but has no name.
  bool first = true;
  for (const std::string& word : SplitWords(module)) {
    if (!first && !at->HoldsList()) return layer;
    const auto part = at->parts.find(word);
    if (part == at->parts.end()) return layer;
    layer += (first ? "" : ".") + word;
    at = &part->second;
    first = false;
  }
  return at->HoldsList() ? "" : layer;
}

std::vector<std::string> PatternsOf(const std::set<std::string>& layers,
                                    const std::set<std::string>& all) {
  Scope root;
  for (const std::string& layer : all)
    AddTo(root, layer, layers.count(layer) > 0);
  std::vector<std::string> patterns;
  AddPatterns(root, "", patterns);
  std::sort(patterns.begin(), patterns.end());
  return patterns;
}

}  // namespace partita::planner
