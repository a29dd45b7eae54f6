// The names of parameters are the most reliable sign of a layer; other values
// follow them.
#include "compiler/sharding/layer_paths.h"

#include <algorithm>
#include <map>

#include "compiler/core/module_paths.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::sharding {
namespace {

using llvm::SmallVector;
using llvm::StringRef;
using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// Generated names such as "onnx::MatMul_626" carry no layer.
bool hasLayer(StringRef name) { return !name.empty() && !name.contains("::"); }

StringRef parentOf(StringRef path) {
  return path.contains('.') ? path.rsplit('.').first : StringRef();
}

std::string nameOf(mlir::Location loc) {
  if (auto name = mlir::dyn_cast<mlir::NameLoc>(loc))
    return name.getName().str();
  if (auto fused = mlir::dyn_cast<mlir::FusedLoc>(loc))
    for (mlir::Location part : fused.getLocations())
      if (std::string name = nameOf(part); !name.empty()) return name;
  return "";
}

// True if exactly one operation uses the value.
bool hasOneUser(Value value) {
  return llvm::all_of(value.getUsers(), [&](Operation* user) {
    return user == *value.getUsers().begin();
  });
}

}  // namespace

LayerPaths::LayerPaths(mlir::ModuleOp module) : module_(module) {
  findWrapper();
}

// Finds the wrapper prefix: "m" if operations of "transformer.h.0.mlp" have
// names like "/m/transformer/h.0/mlp/...".
void LayerPaths::findWrapper() {
  auto main = mlir::ModuleOp(module_).lookupSymbol<FuncOp>("main");
  std::map<std::string, int> votes;
  for (mlir::BlockArgument argument : main.getArguments()) {
    auto name = main.getArgAttrOfType<mlir::StringAttr>(argument.getArgNumber(),
                                                        nn::kNameAttr);
    const std::string layer = name ? parentOf(name.getValue()).str() : "";
    if (layer.empty()) continue;
    for (Operation* user : argument.getUsers()) {
      const std::string named = core::ModuleOf(nameOf(user->getLoc()));
      if (named == layer) ++votes[""];
      if (StringRef rest = named; rest.consume_back("." + layer))
        ++votes[rest.str() + "."];
    }
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != votes.end()) wrapper_ = most->first;
}

LayerPaths::Paths LayerPaths::inMain() const {
  auto main = mlir::ModuleOp(module_).lookupSymbol<FuncOp>("main");
  Paths paths;
  for (mlir::BlockArgument argument : main.getArguments()) {
    const unsigned number = argument.getArgNumber();
    auto name = main.getArgAttrOfType<mlir::StringAttr>(number, nn::kNameAttr);
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(number, nn::kKindAttr);
    LayerPath path;
    path.parameter = name && (!kind || kind.getValue() != "input");
    if (path.parameter && hasLayer(name.getValue())) path.path = name.str();
    paths[argument] = path;
  }
  return inFunction(main, std::move(paths), "");
}

LayerPaths::Paths LayerPaths::inCallee(CallOp call, const Paths& caller) const {
  auto callee = mlir::ModuleOp(module_).lookupSymbol<FuncOp>(call.getCallee());
  std::string context = ofParameters(call, caller);
  if (context.empty() && call.getNumResults() > 0)
    context = caller.lookup(call.getResult(0)).path;
  Paths paths;
  for (auto [operand, argument] :
       llvm::zip_equal(call.getOperands(), callee.getArguments())) {
    LayerPath path = caller.lookup(operand);
    if (!path.parameter) path.path = context;
    path.order = -1;
    paths[argument] = path;
  }
  return inFunction(callee, std::move(paths), context);
}

LayerPaths::Paths LayerPaths::inFunction(FuncOp function, Paths paths,
                                         StringRef context) const {
  int order = 0;
  for (Operation& op : function.front().without_terminator())
    addResults(&op, order++, paths);
  // Values without a layer get that of their first user; last to first.
  for (Operation& op : llvm::reverse(function.front().without_terminator())) {
    if (op.getNumResults() == 0 || !paths[op.getResult(0)].path.empty())
      continue;
    std::string path = context.str();
    for (Operation* user : op.getUsers())
      if (user->getNumResults() > 0 &&
          !paths[user->getResult(0)].path.empty()) {
        path = paths[user->getResult(0)].path;
        break;
      }
    for (Value result : op.getResults()) paths[result].path = path;
  }
  return paths;
}

void LayerPaths::addResults(Operation* op, int order, Paths& paths) const {
  LayerPath path;
  path.order = order;
  path.parameter = op->getNumOperands() > 0;
  LayerPath latest;
  for (Value operand : op->getOperands()) {
    const LayerPath given = paths.lookup(operand);
    path.parameter &= given.parameter;
    if (!given.parameter && !given.path.empty() && given.order >= latest.order)
      latest = given;
  }
  path.path = ofParameters(op, paths);
  if (path.path.empty()) path.path = ofLocation(op);
  if (path.path.empty()) path.path = latest.path;
  for (Value result : op->getResults()) paths[result] = path;
}

// Returns the common layer of the parameters that the operation uses.
// Parameters with several users, such as a bias shared by all layers, count
// only if there are no others.
std::string LayerPaths::ofParameters(Operation* op, const Paths& paths) const {
  for (bool shared : {false, true}) {
    std::string path;
    bool first = true;
    for (Value operand : op->getOperands()) {
      const LayerPath given = paths.lookup(operand);
      if (!given.parameter || given.path.empty() ||
          (!shared && !hasOneUser(operand)))
        continue;
      path = first ? given.path : core::CommonModule(path, given.path);
      first = false;
    }
    if (!path.empty()) return path;
  }
  return "";
}

// A shared function has the locations of the layer that it was built from, so
// they are ignored.
std::string LayerPaths::ofLocation(Operation* op) const {
  auto function = op->getParentOfType<FuncOp>();
  if (function.getName() != "main") return "";
  const std::string path = core::ModuleOf(nameOf(op->getLoc()));
  StringRef rest = path;
  if (!wrapper_.empty() && (rest + ".").str() == wrapper_) return "";
  rest.consume_front(wrapper_);
  return rest.str();
}

}  // namespace partita::sharding
