// Finds sizes by the names of dimensions, and counts layers by their
// attentions.
#include "compiler/driver/planning/find_architecture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "compiler/driver/inspect/inspect_dims.h"
#include "compiler/sharding/layer_paths.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::driver {
namespace {

using sharding::NamedDims;

// Counts the attentions and the mixtures of experts that a model executes. A
// function of identical layers counts once per call.
class Executed {
 public:
  explicit Executed(mlir::ModuleOp module) : symbols_(module) {}

  // The number of attentions; if there are none, the number of softmaxes.
  int64_t countIn(mlir::func::FuncOp function) {
    const Count count = of(function);
    return count.whole > 0 ? count.whole : count.softmaxes;
  }
  int64_t expertsIn(mlir::func::FuncOp function) {
    return of(function).experts;
  }

 private:
  struct Count {
    int64_t whole = 0, softmaxes = 0, experts = 0;
  };

  Count of(mlir::func::FuncOp function) {
    if (const auto known = known_.find(function); known != known_.end())
      return known->second;
    Count count;
    function.walk([&](mlir::Operation* op) {
      const llvm::StringRef name = op->getName().getStringRef();
      count.whole += name == "nn.attention";
      count.softmaxes += name == "nn.softmax";
      count.experts += name == "nn.experts";
      auto call = mlir::dyn_cast<mlir::func::CallOp>(op);
      if (!call) return;
      const Count callee =
          of(symbols_.lookup<mlir::func::FuncOp>(call.getCallee()));
      count.whole += callee.whole;
      count.softmaxes += callee.softmaxes;
      count.experts += callee.experts;
    });
    known_[function] = count;
    return count;
  }

  mlir::SymbolTable symbols_;
  llvm::DenseMap<mlir::Operation*, Count> known_;
};

// The prefix of layers' names: "transformer.h." for "transformer.h.0" and so
// on. Empty if layers have no such names.
std::string findLayerNames(mlir::ModuleOp module, int64_t layers) {
  std::map<std::string, std::set<int64_t>> numbers;
  const sharding::LayerPaths paths(module);
  for (const auto& [value, layer] : paths.inMain()) {
    llvm::SmallVector<llvm::StringRef> words;
    llvm::StringRef(layer.path).split(words, '.');
    std::string before;
    for (llvm::StringRef word : words) {
      int64_t number = 0;
      if (!before.empty() && !word.getAsInteger(10, number)) {
        numbers[before].insert(number);
        break;
      }
      before += word.str() + ".";
    }
  }
  for (const auto& [name, found] : numbers)
    if (static_cast<int64_t>(found.size()) == layers && *found.begin() == 0 &&
        *found.rbegin() == layers - 1)
      return name;
  return "";
}

class Finder {
 public:
  explicit Finder(mlir::ModuleOp module) : module_(module) {}

  mlir::FailureOr<FoundModel> find();

 private:
  mlir::LogicalResult readSizes();
  mlir::LogicalResult readExperts();
  void countLayers();
  int64_t layersAlike();
  const NamedDims* dims(llvm::StringRef name) const {
    for (const NamedDims& found : report_.names)
      if (found.name == name) return &found;
    return nullptr;
  }
  // The largest size of a dimension name; 0 if the model has no such name.
  int64_t size(llvm::StringRef name) const {
    const NamedDims* found = dims(name);
    return found && !found->sizes.empty() ? *found->sizes.rbegin() : 0;
  }

  mlir::ModuleOp module_;
  bool gated_ = false;  // the experts
  sharding::NamingReport report_;
  FoundModel found_;
};

mlir::LogicalResult Finder::readSizes() {
  planner::Architecture& a = found_.architecture;
  for (const char* name : {"E", "M", "N"}) {
    const NamedDims* found = dims(name);
    if (found && found->sizes.size() == 1) continue;
    // Beside experts there are dense MLPs and narrower projections.
    if (found && a.experts > 0 && found->name != "N") continue;
    // Grouped-query attention has fewer heads for keys and values.
    if (found && found->name == "N" && found->sizes.size() == 2 &&
        *found->sizes.rbegin() % *found->sizes.begin() == 0)
      continue;
    std::string sizes;
    if (found)
      for (int64_t each : found->sizes)
        sizes += (sizes.empty() ? "" : ", ") + std::to_string(each);
    return module_.emitError()
           << "expected a transformer whose layers are alike, found a model "
              "with "
           << (sizes.empty() ? std::string("no ") + name
                             : std::string(name) + " of sizes " + sizes);
  }
  a.hidden = size("E");
  a.ffn = a.experts > 0 ? a.expert_ffn : size("M");
  a.heads = size("N");
  a.kv_heads = *dims("N")->sizes.begin();
  a.seq = std::max<int64_t>(size("L"), 1);
  a.vocab = std::max<int64_t>(size("V"), 1);
  found_.batch = std::max<int64_t>(size("B"), 1);
  found_.names.sequence = size("L") > 1;
  if (a.hidden % a.heads == 0) return mlir::success();
  return module_.emitError() << "expected heads that divide the width, found "
                             << a.heads << " heads and " << a.hidden;
}

// Reads the sizes of experts. All layers with experts must be alike.
mlir::LogicalResult Finder::readExperts() {
  planner::Architecture& a = found_.architecture;
  const auto result = module_.walk([&](nn::ExpertsOp op) {
    const auto sizes =
        llvm::cast<mlir::RankedTensorType>(op.getUp().getType()).getShape();
    const auto chosen =
        llvm::cast<mlir::RankedTensorType>(op.getIds().getType()).getShape();
    const bool same =
        a.experts == 0 || (a.experts == sizes[0] && a.expert_ffn == sizes[1] &&
                           a.topk == chosen.back());
    a.experts = sizes[0];
    a.expert_ffn = sizes[1];
    a.topk = chosen.back();
    gated_ = static_cast<bool>(op.getGate());
    return same ? mlir::WalkResult::advance() : mlir::WalkResult::interrupt();
  });
  if (!result.wasInterrupted()) return mlir::success();
  return module_.emitError() << "expected a transformer whose layers are "
                                "alike, found experts of different sizes";
}

// The number of layers that are calls of one function, one after the other; all
// if @main calls no layer. 0 if layers of two kinds take turns, or if those
// with experts are not the most.
int64_t Finder::layersAlike() {
  auto main = module_.lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<llvm::StringRef> callees;
  for (auto call : main.getOps<mlir::func::CallOp>())
    callees.push_back(call.getCallee());
  const int64_t layers = found_.architecture.layers;
  llvm::StringRef layer;
  for (llvm::StringRef callee : callees)
    if (llvm::count(callees, callee) > llvm::count(callees, layer))
      layer = callee;
  const auto alike = static_cast<int64_t>(llvm::count(callees, layer));
  if (alike < 2) return layers;
  bool has_experts = false;
  module_.lookupSymbol<mlir::func::FuncOp>(layer).walk(
      [&](nn::ExpertsOp) { has_experts = true; });
  const auto first = llvm::find(callees, layer);
  const bool in_turns = std::count(first, first + alike, layer) != alike;
  if (in_turns || has_experts != (found_.architecture.experts > 0)) return 0;
  return std::min(alike, layers);
}

// Finds the number of products in an MLP by the bytes of its f32 weights: two,
// or three with a gate.
void Finder::countLayers() {
  planner::Architecture& a = found_.architecture;
  auto main = module_.lookupSymbol<mlir::func::FuncOp>("main");
  Executed executed(module_);
  const int64_t attentions = executed.countIn(main);
  const double matrix = 4.0 * a.hidden * a.ffn;
  const double of_experts =
      4.0 * a.experts * (gated_ ? 3 : 2) * a.hidden * a.expert_ffn;
  const double products = double(dims("M")->bytes) / matrix;
  const auto table = dims("V");
  a.layers = std::max<int64_t>(attentions, 1);
  if (dims("L") && dims("L")->sizes.size() == 2 && attentions % 3 == 0) {
    a.kind = planner::ModelKind::kT5;
    a.layers = attentions / 3;
    a.decoder_seq = *dims("L")->sizes.begin();
  } else if (a.experts > 0 ? gated_
                           : std::lround(products / double(a.layers)) == 3) {
    a.kind = planner::ModelKind::kLlama;
    a.tied = !table || double(table->bytes) < 6.0 * a.vocab * a.hidden;
  } else if (dims("H") || a.vocab < a.hidden) {
    a.kind = planner::ModelKind::kBert;
  }
  found_.repeated = a.kind == planner::ModelKind::kT5 ? 0 : layersAlike();
  if (a.experts == 0) return;
  const double dense =
      double(dims("M")->bytes) -
      static_cast<double>(executed.expertsIn(main)) * of_experts;
  a.shared_ffn = std::max<int64_t>(
      0,
      std::llround(dense / double(a.layers) /
                   (4.0 * (gated_ ? 3 : 2) * static_cast<double>(a.hidden))));
}

mlir::FailureOr<FoundModel> Finder::find() {
  auto report = inspectDims(module_, "");
  if (mlir::failed(report)) return mlir::failure();
  report_ = *std::move(report);
  if (mlir::failed(readExperts()) || mlir::failed(readSizes()))
    return mlir::failure();
  countLayers();
  found_.names.layer = findLayerNames(module_, found_.architecture.layers);
  return found_;
}

}  // namespace

mlir::FailureOr<FoundModel> findArchitecture(mlir::ModuleOp module) {
  return Finder(module).find();
}

}  // namespace partita::driver
