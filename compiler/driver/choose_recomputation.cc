// Orders the candidates by how much they recompute and finds the first that
// fits by binary search.
#include "compiler/driver/choose_recomputation.h"

#include <map>

#include "compiler/driver/compilation.h"
#include "compiler/memory/memory_table.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using plan::Recompute;
using plan::RecomputePolicy;

// Escapes a name to the glob pattern that matches only this name.
std::string patternOf(const std::string& name) {
  std::string pattern;
  for (char c : name) {
    if (llvm::StringRef("*?[]{}\\,!").contains(c)) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

class Choice {
 public:
  Choice(mlir::ModuleOp module, const CompileOptions& options, Fault& fault)
      : module_(module),
        options_(options),
        fault_(fault),
        rules_(recomputeRules(options.plan ? &*options.plan : nullptr,
                              options.train)) {
    // Layers are chosen one by one only for budget rules that apply everywhere.
    for (const Recompute& rule : rules_)
      if (rule.policy == RecomputePolicy::kBudget && rule.at.empty())
        layers_ = layersOf(module);
  }

  FailureOr<RecomputeChoice> run(int64_t limit) {
    // Candidates: none, selective, the first N layers in full, everything in
    // full.
    const size_t last = 2 + (layers_.empty() ? 0 : layers_.size() - 1);
    size_t fits = last;
    for (size_t candidate : {size_t{0}, size_t{1}, last}) {
      FailureOr<int64_t> bytes = bytesOf(candidate);
      if (mlir::failed(bytes)) return failure();
      if (*bytes > limit) continue;
      fits = candidate;
      break;
    }
    if (fits == last && bytes_.at(last) <= limit) {
      size_t too_little = 1;
      while (fits - too_little > 1) {
        const size_t middle = (fits + too_little) / 2;
        FailureOr<int64_t> bytes = bytesOf(middle);
        if (mlir::failed(bytes)) return failure();
        (*bytes <= limit ? fits : too_little) = middle;
      }
    }
    return RecomputeChoice{rulesOf(fits), bytes_.at(fits), textOf(fits)};
  }

 private:
  size_t layersInFull(size_t candidate) const {
    return candidate < 2 ? 0 : candidate - 1;
  }
  bool isEverything(size_t candidate) const {
    return candidate >= 2 && layersInFull(candidate) >= layers_.size();
  }

  std::vector<Recompute> rulesOf(size_t candidate) const {
    std::vector<Recompute> rules;
    for (Recompute rule : rules_) {
      const bool chosen = rule.policy == RecomputePolicy::kBudget;
      if (chosen)
        rule.policy = candidate == 0            ? RecomputePolicy::kNone
                      : isEverything(candidate) ? RecomputePolicy::kFull
                                                : RecomputePolicy::kSelective;
      rules.push_back(rule);
      if (!chosen || !rule.at.empty() || isEverything(candidate)) continue;
      Recompute full{RecomputePolicy::kFull, {}, rule.where};
      for (size_t i = 0; i < layersInFull(candidate); ++i)
        full.at.push_back(patternOf(layers_[i]));
      if (!full.at.empty()) rules.push_back(std::move(full));
    }
    return rules;
  }

  std::string textOf(size_t candidate) const {
    if (candidate == 0) return "none";
    if (isEverything(candidate)) return "full";
    const size_t count = layersInFull(candidate);
    if (count == 0) return "selective";
    return "full in " + std::to_string(count) + " of " +
           std::to_string(layers_.size()) + " layers ('" + layers_[0] +
           (count > 1 ? "' to '" + layers_[count - 1] : "") +
           "'), selective elsewhere";
  }

  FailureOr<int64_t> bytesOf(size_t candidate) {
    CompileOptions options = options_;
    options.progress = false;
    options.dump_dir.clear();
    options.train.recompute = rulesOf(candidate);
    if (options.plan) options.plan->recompute = options.train.recompute;
    // Only the chosen candidate may emit warnings.
    mlir::ScopedDiagnosticHandler quiet(
        module_.getContext(), [](mlir::Diagnostic& diagnostic) {
          return mlir::success(diagnostic.getSeverity() !=
                               mlir::DiagnosticSeverity::Error);
        });
    Compilation trial(mlir::OwningOpRef<mlir::ModuleOp>(module_.clone()),
                      options, Milestone::kSimplified, /*machine_code=*/false);
    if (mlir::failed(trial.runTo(Milestone::kPlanned, fault_)))
      return failure();
    return bytes_[candidate] = trial.report().memoryTable().total();
  }

  mlir::ModuleOp module_;
  const CompileOptions& options_;
  Fault& fault_;
  const std::vector<Recompute>& rules_;
  std::vector<std::string> layers_;
  std::map<size_t, int64_t> bytes_;  // by candidate
};

}  // namespace

const std::vector<Recompute>& recomputeRules(const plan::Plan* plan,
                                             const TrainOptions& train) {
  return plan != nullptr && !plan->recompute.empty() ? plan->recompute
                                                     : train.recompute;
}

bool hasBudget(const std::vector<Recompute>& rules) {
  return llvm::any_of(rules, [](const Recompute& rule) {
    return rule.policy == RecomputePolicy::kBudget;
  });
}

std::vector<std::string> layersOf(mlir::ModuleOp module) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<std::string> layers;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
    auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    if (!kind || kind.getValue() != "parameter" || !name) continue;
    llvm::StringRef layer = name.getValue();
    while (layer.contains('.')) {
      layer = layer.rsplit('.').first;
      if (!layer.contains('.')) break;
      if (llvm::all_of(layer.rsplit('.').second, llvm::isDigit)) {
        if (!llvm::is_contained(layers, layer)) layers.push_back(layer.str());
        break;
      }
    }
  }
  return layers;
}

FailureOr<RecomputeChoice> chooseRecomputation(mlir::ModuleOp module,
                                               const CompileOptions& options,
                                               int64_t limit, Fault& fault) {
  return Choice(module, options, fault).run(limit);
}

}  // namespace partita::driver
