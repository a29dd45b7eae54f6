// Numbers the operations before partitioning, and matches them by number after
// it.
#include "compiler/driver/verify/verify.h"

#include <chrono>
#include <cmath>
#include <map>

#include "compiler/driver/compilation.h"
#include "compiler/driver/cut_model.h"
#include "compiler/driver/session.h"
#include "compiler/driver/verify/describe_placement.h"
#include "compiler/driver/verify/rounding_bounds.h"
#include "compiler/driver/verify/shrink_model.h"
#include "compiler/driver/verify/verify_runs.h"
#include "compiler/driver/verify/verify_values.h"
#include "compiler/partition/partition.h"
#include "compiler/partition/spmd_interpreter.h"
#include "compiler/plan/glob.h"
#include "compiler/sharding/convert.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/TypeUtilities.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::func::CallOp;
using mlir::func::FuncOp;
using partition::Everywhere;

constexpr double kTolerance = 1e-5;
// Sixteen roundings of f16 and of bf16.
constexpr double kHalfTolerance = 16.0 / 2048, kBrainTolerance = 16.0 / 256;
// About a minute for each of the three runs; loops count as one iteration.
constexpr int64_t kMostWork = 3'000'000'000;
// A layer's input then comes once from the model and once from another layer.
constexpr int64_t kLayersKept = 2;

// The tolerance for values that are computed in another order.
double toleranceOf(mlir::ModuleOp module) {
  double tolerance = kTolerance;
  module.walk([&](Operation* op) {
    for (mlir::Type type : op->getResultTypes()) {
      mlir::Type element = mlir::getElementTypeOrSelf(type);
      if (element.isF16()) tolerance = std::max(tolerance, kHalfTolerance);
      if (element.isBF16()) tolerance = std::max(tolerance, kBrainTolerance);
    }
  });
  return tolerance;
}

// The values of each numbered operation in each of its runs.
using Key = std::pair<int64_t, int64_t>;
using Record = std::map<Key, std::vector<nn::Tensor>>;

class Verification {
 public:
  Verification(mlir::ModuleOp module, const plan::Plan& plan,
               const VerifyOptions& options)
      : imported_(module.clone()),
        plan_(plan),
        options_(options),
        train_(options.train),
        runs_(options.source_folder, options.progress),
        tolerance_(toleranceOf(module)),
        import_tolerance_(tolerance_ == kTolerance ? 10 * kTolerance
                                                   : 2 * tolerance_) {
    train_.keep_gradients = true;
    train_.microbatches = plan.microbatches;
  }

  FailureOr<llvm::json::Value> run() {
    const Clock::time_point start = Clock::now();
    if (train_.onebit_warmup > 0 || isZeroOne(train_))
      return imported_->emitError(
                 "expected an optimizer whose steps are the same on any number "
                 "of devices, found ")
                 << train_.optimizer << "; verify the plan with --train "
                 << (train_.optimizer == "1bit-lamb" ? "lamb" : "adamw")
                 << ", and what devices exchange then differs by design",
             failure();
    auto dropped = shrink();
    if (mlir::failed(dropped)) return failure();
    namePorts(*imported_);
    whole_ = imported_->clone();
    if (train() && mlir::failed(trainImported())) return failure();
    CompileOptions options = optionsToJudge(plan_, train());
    options.plan->precision.reset();  // rounding would hide errors
    // Up to kDivided tensors are whole: this is the undivided model.
    if (mlir::failed(
            Compilation(*whole_, options).runTo(Milestone::kDivided, fault_)))
      return failure();
    numberOperations();
    // Not cut into ranks: one program for all devices.
    mlir::OwningOpRef<mlir::ModuleOp> divided(whole_->clone());
    if (mlir::failed(Compilation(*divided, options, Milestone::kCut)
                         .runTo(Milestone::kPartitioned, fault_)))
      return failure();
    if (options_.breaking) options_.breaking(*divided);
    if (mlir::failed(runImported()) || mlir::failed(runWhole()) ||
        mlir::failed(runDivided(*divided)) || mlir::failed(runRanks(options)))
      return failure();
    llvm::json::Object facts{{"mesh", plan::ToString(plan_.mesh)},
                             {"devices", plan_.mesh.Size()},
                             {"compared", compared_},
                             {"largest", largest_},
                             {"tolerance", tolerance_},
                             {"largest_to_imported", largest_to_imported_},
                             {"layers_left_out", *dropped},
                             {"weights_read", runs_.arguments().read()},
                             {"weights_made_up", runs_.arguments().madeUp()},
                             {"seconds", secondsSince(start)},
                             {"gradients", gradients_},
                             {"imported_compared", !imported_results_.empty()},
                             {"equal", first_.empty()}};
    if (!first_.empty()) facts["first"] = first_;
    if (!unequal_.empty()) facts["unequal_results"] = unequal_;
    return llvm::json::Value(std::move(facts));
  }

  Fault fault() const { return fault_; }

 private:
  // Null: inference.
  const TrainOptions* train() const {
    return train_.optimizer.empty() ? nullptr : &train_;
  }

  // Turns the imported model into a training step of the whole batch at once,
  // without simplifying it.
  LogicalResult trainImported() {
    CompileOptions options;
    options.progress = false;
    options.train = train_;
    options.train.microbatches = 1;
    if (mlir::failed(Compilation(*imported_, options)
                         .runTo(Milestone::kLossAttached, fault_)))
      return failure();
    return Compilation(*imported_, options, Milestone::kSimplified)
        .runTo(Milestone::kStep, fault_);
  }

  // Removes layers of a large model, but none that the plan treats differently
  // from the layer before it.
  FailureOr<int64_t> shrink() {
    // Scopes may name layers by their paths, which would be removed with them.
    const bool scoped = llvm::any_of(plan_.shard, [](const plan::Entry& entry) {
      return !entry.at.empty();
    });
    if (options_.full || scoped || workOf(*imported_) <= kMostWork) return 0;
    return dropRepeatedLayers(
        *imported_, kLayersKept, [this](llvm::StringRef a, llvm::StringRef b) {
          const auto tells = [&](const std::string& pattern) {
            return plan::MatchesGlob(pattern, a.str()) !=
                   plan::MatchesGlob(pattern, b.str());
          };
          return llvm::none_of(plan_.overrides,
                               [&](const plan::Override& override) {
                                 return tells(override.tensor);
                               }) &&
                 llvm::none_of(plan_.names, [&](const plan::Name& name) {
                   return tells(name.tensor);
                 });
        });
  }

  // Functions that loops run. Loops are compared by their results, as the
  // rounding errors of one iteration say nothing about those of the next.
  llvm::DenseSet<Operation*> functionsInLoops() {
    llvm::SmallVector<Operation*> open;
    whole_->walk([&](nn::LoopOp loop) {
      open.push_back(whole_->lookupSymbol(loop.getBody()));
    });
    llvm::DenseSet<Operation*> looped;
    while (!open.empty()) {
      Operation* function = open.pop_back_val();
      if (!function || !looped.insert(function).second) continue;
      function->walk([&](CallOp call) {
        open.push_back(whole_->lookupSymbol(call.getCallee()));
      });
    }
    return looped;
  }

  void numberOperations() {
    int64_t next = 0;
    mlir::Builder builder(whole_->getContext());
    const llvm::DenseSet<Operation*> looped = functionsInLoops();
    whole_->walk([&](Operation* op) {
      if (llvm::isa<nn::ReferenceOpInterface>(op) &&
          !llvm::isa<mlir::arith::ConstantOp>(op) &&
          !looped.contains(op->getParentOp()))
        op->setAttr(partition::kOriginAttr, builder.getI64IntegerAttr(next++));
    });
  }

  // The number of runs of an operation, and the operation that began the latest
  // one. Dividing may copy an operation within its function, for uses that want
  // another sharding. A run of the function is one run of all its copies.
  struct Runs {
    int64_t count = 0;
    Operation* first = nullptr;
  };

  // The number of the operation, and the number of its earlier runs.
  static std::optional<Key> key(Operation* op, std::map<int64_t, Runs>& runs) {
    auto number = op->getAttrOfType<mlir::IntegerAttr>(partition::kOriginAttr);
    if (!number) return std::nullopt;
    Runs& known = runs[number.getInt()];
    if (known.first == nullptr || known.first == op ||
        known.first->getParentOp() != op->getParentOp()) {
      known.first = op;
      ++known.count;
    }
    return std::make_pair(number.getInt(), known.count - 1);
  }

  LogicalResult runImported() {
    auto results = runs_.run(
        *imported_, core::Mesh(), "the model as imported",
        [&](Operation* op, llvm::ArrayRef<Everywhere> values) {
          if (llvm::isa<nn::ReferenceOpInterface>(op))
            for (const Everywhere& value : values)
              imported_values_[value.front().size()].push_back(value.front());
        });
    if (mlir::failed(results)) return failure();
    auto main = imported_.get().lookupSymbol<FuncOp>("main");
    if (train_.microbatches > 1 && hasBatchStatistics(main)) return success();
    for (auto [i, result] : llvm::enumerate(*results))
      imported_results_.try_emplace(resultName(main, i), result.front());
    return success();
  }

  // True if batch norms use batch statistics. A microbatch has other statistics
  // than the whole batch, so a step of several microbatches has other results.
  static bool hasBatchStatistics(FuncOp main) {
    llvm::DenseSet<mlir::Attribute> updated;
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      updated.insert(main.getResultAttr(i, nn::kUpdatesAttr));
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
      if (kind && kind.getValue() == "buffer" &&
          updated.contains(main.getArgAttr(i, nn::kNameAttr)))
        return true;
    }
    return false;
  }

  // "result 0", "the gradient of h.0.up.weight".
  static std::string resultName(FuncOp main, unsigned i) {
    const auto text = [&](llvm::StringRef name) {
      auto attr = main.getResultAttrOfType<mlir::StringAttr>(i, name);
      return attr ? attr.getValue() : llvm::StringRef();
    };
    if (llvm::StringRef updated = text(nn::kUpdatesAttr); !updated.empty())
      return updated.str() + " after the step";
    llvm::StringRef name = text(nn::kNameAttr);
    if (name.consume_front("grad.")) return "the gradient of " + name.str();
    return "result " + std::to_string(i);
  }

  // The magnitudes that rounding errors of the whole model's values are
  // relative to.
  std::vector<double> findBounds() {
    std::map<int64_t, Runs> runs;
    std::optional<Key> number;
    return boundRoundings(
        whole_.get().lookupSymbol<FuncOp>("main"), runs_.largestArguments(),
        [&](Operation* op) {
          number = key(op, runs);
          std::vector<double> largest;
          if (auto constant = llvm::dyn_cast<mlir::arith::ConstantOp>(op)) {
            auto dense =
                llvm::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
            if (dense)
              largest.push_back(largestOf(nn::Tensor::fromAttr(dense)));
          } else if (number) {
            for (const nn::Tensor& value : record_.at(*number))
              largest.push_back(largestOf(value));
          }
          return largest;
        },
        [&](Operation*, llvm::ArrayRef<double> bounds) {
          if (number) bounds_[*number] = bounds.vec();
        });
  }

  LogicalResult runWhole() {
    std::map<int64_t, Runs> runs;
    auto results =
        runs_.run(*whole_, core::Mesh(), "the undivided model",
                  [&](Operation* op, llvm::ArrayRef<Everywhere> values) {
                    auto number = key(op, runs);
                    if (!number) return;
                    order_.push_back({op, *number});
                    whole_operations_[number->first] = op;
                    for (const Everywhere& value : values)
                      record_[*number].push_back(value.front());
                  });
    if (mlir::failed(results)) return failure();
    result_bounds_ = findBounds();
    auto main = whole_.get().lookupSymbol<FuncOp>("main");
    for (auto [i, result] : llvm::enumerate(*results)) {
      results_.push_back(result.front());
      const std::string name = resultName(main, i);
      gradients_ += llvm::StringRef(name).starts_with("the gradient of");
      auto imported = imported_results_.find(name);
      if (imported == imported_results_.end()) continue;
      const double distance =
          distanceOf(results_[i], imported->second, result_bounds_[i]);
      largest_to_imported_ = std::max(
          largest_to_imported_, std::isnan(distance) ? HUGE_VAL : distance);
      if (distance <= import_tolerance_ || !first_.empty()) continue;
      first_ = llvm::formatv(
          "{0} differs from the imported model's by {1:E2} of the "
          "largest value before anything is divided; {2}",
          name, distance, whereWholeDiffers());
    }
    imported_values_.clear();
    return success();
  }

  // The first of the operations at the end of the model of which no value is
  // equal to one of the imported model.
  std::string whereWholeDiffers() const {
    const InputDependence dependence(whole_.get().lookupSymbol<FuncOp>("main"));
    const std::pair<Operation*, Key>* first = nullptr;
    for (const auto& entry : llvm::reverse(order_)) {
      if (!dependence.contains(entry.first)) continue;
      if (llvm::any_of(
              record_.at(entry.second),
              [this](const nn::Tensor& value) { return isImported(value); }))
        break;
      first = &entry;
    }
    if (first == nullptr) return "all operations agree";
    return "from " + nameOf(first->first, first->second) +
           " on, no value matches";
  }

  bool isImported(const nn::Tensor& value) const {
    auto found = imported_values_.find(value.size());
    return found != imported_values_.end() &&
           llvm::any_of(found->second, [&](const nn::Tensor& imported) {
             return imported.isFloat() == value.isFloat() &&
                    distanceOf(value, imported) <= import_tolerance_;
           });
  }

  LogicalResult runDivided(mlir::ModuleOp module) {
    auto main = module.lookupSymbol<FuncOp>("main");
    std::map<int64_t, Runs> runs;
    auto results =
        runs_.run(module, plan_.mesh, "the divided model",
                  [&](Operation* op, llvm::ArrayRef<Everywhere> values) {
                    if (auto number = key(op, runs))
                      compare(op, *number, values);
                  });
    if (mlir::failed(results)) return failure();
    for (auto [i, result] : llvm::enumerate(*results))
      judgeResult(main, i, result, i, resultName(main, i));
    return success();
  }

  // Judges a result as users get it: result `i` of @main must equal result
  // `expected` of the whole model.
  void judgeResult(FuncOp main, unsigned i, const Everywhere& result,
                   size_t expected, const std::string& name) {
    auto sharding = sharding::toCore(
        main.getResultAttrOfType<dist::ShardingAttr>(i, dist::kShardingAttr),
        plan_.mesh);
    auto whole = whole_->lookupSymbol<FuncOp>("main");
    if (!judge(partition::assembleTensor(result, plan_.mesh,
                                         results_[expected].type(), *sharding),
               results_[expected], name, result_bounds_[expected],
               describePlacement(whole.front().getTerminator()->getOperand(
                                     static_cast<unsigned>(expected)),
                                 *sharding, plan_.mesh)))
      unequal_.push_back(name);
  }

  // Judges the results of all ranks of a pipeline together.
  LogicalResult runRanks(const CompileOptions& options) {
    Compilation ranks(*whole_, options, Milestone::kDivided);
    if (!ranks.isPipeline()) return success();
    if (mlir::failed(ranks.runTo(Milestone::kPartitioned, fault_)))
      return failure();
    auto results = runs_.runRanks(ranks.programs(), plan_.mesh);
    if (mlir::failed(results)) return failure();
    auto whole = whole_->lookupSymbol<FuncOp>("main");
    llvm::StringMap<size_t> numbers;
    for (unsigned i = 0; i < whole.getNumResults(); ++i)
      numbers[resultKey(whole, i)] = i;
    for (auto [rank, program] : llvm::enumerate(ranks.programs())) {
      auto main = mlir::ModuleOp(program).lookupSymbol<FuncOp>("main");
      for (auto [i, result] : llvm::enumerate((*results)[rank])) {
        const size_t number = numbers.lookup(resultKey(main, i));
        judgeResult(main, i, result, number,
                    resultName(whole, number) + ", of rank " +
                        std::to_string(rank) + " of the pipeline,");
      }
    }
    return success();
  }

  // A key for a result that is the same in a module and in its ranks' modules.
  static std::string resultKey(FuncOp main, unsigned i) {
    for (llvm::StringRef name : {nn::kUpdatesAttr, nn::kNameAttr})
      if (auto attr = main.getResultAttrOfType<mlir::StringAttr>(i, name))
        return (name + ":" + attr.getValue()).str();
    return "";
  }

  void compare(Operation* op, Key number, llvm::ArrayRef<Everywhere> values) {
    const std::vector<nn::Tensor>& expected = record_[number];
    auto placements =
        op->getAttrOfType<mlir::ArrayAttr>(partition::kOriginShardingsAttr);
    if (!placements || expected.size() != values.size()) return;
    for (auto [i, value] : llvm::enumerate(values)) {
      auto sharding = sharding::toCore(
          llvm::cast<dist::ShardingAttr>(placements[i]), plan_.mesh);
      const auto reduction = static_cast<core::Reduction>(
          op->getAttrOfType<mlir::IntegerAttr>(partition::kOriginReductionAttr)
              .getInt());
      const nn::Tensor found = partition::assembleTensor(
          value, plan_.mesh, expected[i].type(), *sharding, reduction);
      // A sum is as exact as its parts, which may cancel, as deviations from a
      // mean do.
      double parts = bounds_.at(number)[i];
      if (!sharding->unreduced.empty())
        for (const nn::Tensor& part : value)
          parts = std::max(parts, largestOf(part));
      judge(found, expected[i], nameOf(op, number), parts,
            describePlacement(whole_operations_.at(number.first)->getResult(i),
                              *sharding, plan_.mesh));
    }
  }

  // "nn.conv at model.onnx:3, in call 2 of layer @h".
  static std::string nameOf(Operation* op, Key key) {
    std::string name =
        op->getName().getStringRef().str() + " at " + describe(op->getLoc());
    if (auto function = op->getParentOfType<FuncOp>(); function.isPrivate())
      name += ", in call " + std::to_string(key.second + 1) + " of layer @" +
              function.getName().str() + ",";
    return name;
  }

  // Returns true if both are equal; records the first pair that is not.
  bool judge(const nn::Tensor& found, const nn::Tensor& expected,
             const std::string& what, double least,
             const std::string& placement) {
    const double distance = distanceOf(found, expected, least);
    ++compared_;
    largest_ = std::max(largest_, std::isnan(distance) ? 0 : distance);
    if (distance <= tolerance_) return true;
    if (!first_.empty()) return false;
    first_ = what +
             (std::isnan(distance)
                  ? std::string(" uses rows beyond a dimension's end")
                  : llvm::formatv(" differs by {0:E2} of the largest "
                                  "value",
                                  distance)
                        .str()) +
             "; it is " + placement;
    return false;
  }

  mlir::OwningOpRef<mlir::ModuleOp> imported_, whole_;
  const plan::Plan& plan_;
  const VerifyOptions& options_;
  TrainOptions train_;
  VerifyRuns runs_;
  const double tolerance_, import_tolerance_;
  std::map<std::string, nn::Tensor> imported_results_;
  std::vector<nn::Tensor> results_;
  // By number of elements.
  std::map<int64_t, std::vector<nn::Tensor>> imported_values_;
  std::vector<std::pair<Operation*, Key>> order_;
  std::map<int64_t, Operation*> whole_operations_;  // by number
  Record record_;
  std::map<Key, std::vector<double>> bounds_;
  std::vector<double> result_bounds_;
  int64_t compared_ = 0, gradients_ = 0;
  double largest_ = 0, largest_to_imported_ = 0;
  std::string first_;
  std::vector<std::string> unequal_;
  Fault fault_ = Fault::kUser;
};

}  // namespace

FailureOr<llvm::json::Value> verifyPlan(mlir::ModuleOp module,
                                        const plan::Plan& plan,
                                        const VerifyOptions& options,
                                        Fault* fault) {
  Verification verification(module, plan, options);
  FailureOr<llvm::json::Value> facts = verification.run();
  if (fault) *fault = verification.fault();
  return facts;
}

}  // namespace partita::driver
