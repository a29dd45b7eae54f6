// Relates the paths inside functions to the paths of their calls.
#include "compiler/kernels/layers.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "compiler/core/module_paths.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/labels.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace partita::kernels {
namespace {

using mlir::Operation;
using mlir::func::CallOp;
using mlir::func::FuncOp;
using Words = std::vector<std::string>;

std::string pathOf(mlir::Location loc) {
  if (auto name = mlir::dyn_cast<mlir::NameLoc>(loc)) {
    const std::string text = name.getName().str();
    // Passes put sentences around a location: "copy of result 1".
    if (text.find(' ') != std::string::npos) return pathOf(name.getChildLoc());
    std::string path = core::ModuleOf(text);
    // Files without modules name operations "Add_12".
    const bool is_operation = !path.empty() && llvm::isUpper(path[0]) &&
                              !llvm::is_contained(path, '.');
    return is_operation ? "" : path;
  }
  auto fused = mlir::dyn_cast<mlir::FusedLoc>(loc);
  if (!fused) return "";
  std::string path;
  for (auto [i, part] : llvm::enumerate(fused.getLocations())) {
    const std::string own = pathOf(part);
    if (!fused.getMetadata()) {
      if (!own.empty()) return own;
    } else {
      path = i == 0 ? own : core::CommonModule(path, own);
    }
  }
  return path;
}

bool isNamed(Operation& op) {
  return !op.hasTrait<mlir::OpTrait::ConstantLike>() &&
         !op.hasTrait<mlir::OpTrait::IsTerminator>() &&
         !llvm::isa<exec::ViewOp>(op);
}

std::string relative(const Words& words, size_t begin) {
  return "." + core::JoinWords(words, begin, words.size());
}

// Continues `path`, of a call, by the path of an operation of its callee.
std::string joined(const std::string& path, const std::string& own) {
  if (own.empty() || own[0] != '.') return own;
  if (own.size() == 1) return path;
  return path.empty() ? own.substr(1) : path + own;
}

// Appends the function's callees, then the function.
void addCalleesFirst(FuncOp function, llvm::StringSet<>& seen,
                     llvm::SmallVectorImpl<FuncOp>& order) {
  if (function.isExternal() || function->hasAttr(exec::kKernelAttr) ||
      !seen.insert(function.getName()).second)
    return;
  auto module = function->getParentOfType<mlir::ModuleOp>();
  for (auto call : function.getOps<CallOp>())
    addCalleesFirst(module.lookupSymbol<FuncOp>(call.getCallee()), seen, order);
  order.push_back(function);
}

}  // namespace

Layers::Layers(mlir::ModuleOp module) : module_(module) {
  llvm::StringSet<> seen;
  for (FuncOp function : module.getOps<FuncOp>())
    addCalleesFirst(function, seen, functions_);
  for (FuncOp function : functions_) readLocations(function);
  dropWrapper();
  for (FuncOp function : functions_) relate(function);
  for (FuncOp function : llvm::reverse(functions_))
    patterns_[function.getName()] = callsOf(function);
}

std::string Layers::patternOf(Operation* op) const {
  auto function = op->getParentOfType<FuncOp>();
  return joined(patterns_.lookup(function.getName()), of(op));
}

void Layers::readLocations(FuncOp function) {
  for (Operation& op : function.front()) {
    if (!isNamed(op)) continue;
    paths_[&op] = pathOf(op.getLoc());
    if (auto call = llvm::dyn_cast<CallOp>(op))
      calls_[call.getCallee()].push_back(call);
  }
}

// Exporters put a wrapper's name in front of operations, as in
// "m.transformer.h.0" where parameters have "transformer.h.0".
void Layers::dropWrapper() {
  std::set<std::string> roots;  // first words of parameters' names
  for (FuncOp function : functions_)
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto kind = function.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
      auto name = function.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      if (kind && name && kind.getValue() == "parameter")
        roots.insert(name.getValue().split('.').first.str());
    }
  std::map<std::string, int> votes;
  for (const auto& [op, path] : paths_) {
    const Words words = core::WordsOf(path);
    for (size_t i = 0; i < words.size(); ++i)
      if (roots.count(words[i]) > 0) {
        ++votes[core::JoinWords(words, 0, i)];
        break;
      }
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == votes.end() || most->first.empty()) return;
  for (auto& [op, path] : paths_)
    if (path == most->first)
      path.clear();
    else if (llvm::StringRef(path).starts_with(most->first + "."))
      path = path.substr(most->first.size() + 1);
}

void Layers::relate(FuncOp function) {
  if (calls_.lookup(function.getName()).empty()) return;
  bool related = false;
  for (Operation& op : function.front()) {
    const std::string path = paths_.lookup(&op);
    const std::string kind = llvm::StringRef(path).split('.').first.str();
    const llvm::StringRef name = function.getName();
    if (kind.empty() || (name != kind && !name.starts_with(kind + "_")))
      continue;
    related = relateToKind(function, kind);
    break;
  }
  if (!related && !relateToNumber(function) && !shortenCalls(function))
    // Locations of one call say nothing about the others.
    for (Operation& op : function.front())
      if (isNamed(op)) paths_[&op] = ".";
  for (Operation& op : function.front())
    if (isNamed(op) && paths_[&op].empty()) paths_[&op] = ".";
}

// "block.mlp.up" in @block. False if `kind` is not a kind but the first word of
// layers' paths, as "h" is of "h.0".
bool Layers::relateToKind(FuncOp function, const std::string& kind) {
  for (CallOp call : calls_.lookup(function.getName()))
    if (llvm::StringRef(paths_.lookup(call)).split('.').first == kind)
      return false;
  for (Operation& op : function.front()) {
    const Words words = core::WordsOf(paths_.lookup(&op));
    if (!words.empty() && words[0] == kind) paths_[&op] = relative(words, 1);
  }
  return true;
}

// "h.0.mlp.up" in a function that "h.0" and "h.1" call. The first word in which
// the paths differ numbers the layers.
bool Layers::relateToNumber(FuncOp function) {
  std::vector<Words> all;
  for (CallOp call : calls_.lookup(function.getName()))
    if (!paths_.lookup(call).empty())
      all.push_back(core::WordsOf(paths_.lookup(call)));
  if (all.empty()) return false;
  for (Operation& op : function.front())
    if (const std::string path = paths_.lookup(&op); !path.empty()) {
      all.push_back(core::WordsOf(path));
      break;
    }
  size_t number = all[0].size();
  for (const Words& words : all) {
    size_t same = 0;
    while (same < std::min(words.size(), number) && words[same] == all[0][same])
      ++same;
    number = std::min(number, same);
  }
  const auto is_numbered = [&](const Words& words) {
    return words.size() > number && core::IsNumber(words[number]) &&
           std::equal(words.begin(), words.begin() + number, all[0].begin());
  };
  if (!llvm::all_of(all, is_numbered)) return false;
  for (Operation& op : function.front()) {
    const Words words = core::WordsOf(paths_.lookup(&op));
    if (is_numbered(words)) paths_[&op] = relative(words, number + 1);
  }
  for (CallOp call : calls_.lookup(function.getName())) {
    const Words words = core::WordsOf(paths_.lookup(call));
    if (!words.empty()) paths_[call] = core::JoinWords(words, 0, number + 1);
  }
  return true;
}

// Calls have the path of their first operation. Shortens it to the module of
// all operations. False if calls have different paths.
bool Layers::shortenCalls(FuncOp function) {
  std::string common, call_path;
  const auto add = [&](const std::string& path) {
    if (path.empty()) return;
    common = common.empty() ? path : core::CommonModule(common, path);
  };
  for (CallOp call : calls_.lookup(function.getName())) {
    const std::string path = paths_.lookup(call);
    if (!call_path.empty() && !path.empty() && path != call_path) return false;
    if (!path.empty()) call_path = path;
  }
  add(call_path);
  for (Operation& op : function.front())
    if (!common.empty()) add(paths_.lookup(&op));
  if (common.empty()) return true;
  for (CallOp call : calls_.lookup(function.getName()))
    if (!paths_.lookup(call).empty()) paths_[call] = common;
  return true;
}

// Returns a pattern for all calls of the function. Requires the patterns of its
// callers.
std::string Layers::callsOf(FuncOp function) const {
  std::string pattern;
  for (CallOp call : calls_.lookup(function.getName())) {
    const std::string path = patternOf(call);
    if (path.empty()) continue;
    pattern = pattern.empty() ? path : core::CommonPattern(pattern, path);
  }
  return pattern;
}

}  // namespace partita::kernels
