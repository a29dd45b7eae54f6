// Numbers the operations before partitioning, and knows them again after it.
#include "compiler/driver/verify.h"

#include <cmath>
#include <map>

#include "compiler/driver/model_phases.h"
#include "compiler/driver/session.h"
#include "compiler/partition/partition.h"
#include "compiler/partition/spmd_interpreter.h"
#include "compiler/sharding/convert.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::success;
using mlir::func::FuncOp;
using partition::Everywhere;

constexpr double kTolerance = 1e-5;

LogicalResult runPhase(mlir::ModuleOp module, const Phase& phase) {
  mlir::PassManager manager(module.getContext());
  phase.build(manager);
  return manager.run(module);
}

// Numbers from a formula: floats in [-0.5, 0.5), weights among them; integers
// 0, 1, 2, which are tokens of any vocabulary.
nn::Tensor madeUp(RankedTensorType type, llvm::StringRef name) {
  nn::Tensor tensor(type);
  uint64_t state = llvm::xxh3_64bits(name);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t random = state >> 33;
    if (tensor.isFloat())
      tensor.setFloat(i, static_cast<double>(random % 4096) / 4096 - 0.5);
    else
      tensor.setInt(i, random % (type.getElementTypeBitWidth() == 1 ? 2 : 3));
  }
  return tensor;
}

// Variances must be positive, whatever their name.
bool isVariance(llvm::StringRef name) {
  return name.contains("var") || name.contains("scale");
}

std::vector<nn::Tensor> makeArguments(FuncOp main) {
  std::vector<nn::Tensor> arguments;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto attr = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    const std::string name = attr ? attr.str() : std::to_string(i);
    nn::Tensor tensor =
        madeUp(llvm::cast<RankedTensorType>(main.getArgumentTypes()[i]), name);
    if (tensor.isFloat() && isVariance(name))
      for (int64_t j = 0; j < tensor.size(); ++j)
        tensor.setFloat(j, tensor.getFloat(j) + 1);
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

// The values of numbered operations, each time they ran, in order.
using Record = std::map<std::pair<int64_t, int64_t>, std::vector<nn::Tensor>>;

class Verification {
 public:
  Verification(mlir::ModuleOp module, const plan::Plan& plan)
      : whole_(module.clone()), plan_(plan) {}

  FailureOr<llvm::json::Value> run() {
    for (const Phase& phase : simplifyModel())
      if (mlir::failed(runPhase(*whole_, phase))) return failure();
    std::vector<Phase> dividing = divideModel(plan_);
    // All but the last phase keep whole tensors: what they leave is compared.
    for (size_t i = 0; i + 1 < dividing.size(); ++i)
      if (mlir::failed(runPhase(*whole_, dividing[i]))) return failure();
    numberOperations();
    mlir::OwningOpRef<mlir::ModuleOp> divided(whole_->clone());
    if (mlir::failed(runPhase(*divided, dividing.back()))) return failure();
    if (mlir::failed(runWhole()) || mlir::failed(runDivided(*divided)))
      return failure();
    llvm::json::Object facts{{"mesh", plan::ToString(plan_.mesh)},
                             {"devices", plan_.mesh.Size()},
                             {"compared", compared_},
                             {"largest", largest_},
                             {"equal", first_.empty()}};
    if (!first_.empty()) facts["first"] = first_;
    return llvm::json::Value(std::move(facts));
  }

 private:
  void numberOperations() {
    int64_t next = 0;
    mlir::Builder builder(whole_->getContext());
    whole_->walk([&](Operation* op) {
      if (llvm::isa<nn::ReferenceOpInterface>(op) &&
          !llvm::isa<mlir::arith::ConstantOp>(op))
        op->setAttr(partition::kOriginAttr, builder.getI64IntegerAttr(next++));
    });
  }

  // The number of the operation and how often it has run before.
  static std::optional<std::pair<int64_t, int64_t>> key(
      Operation* op, std::map<int64_t, int64_t>& runs) {
    auto number = op->getAttrOfType<mlir::IntegerAttr>(partition::kOriginAttr);
    if (!number) return std::nullopt;
    return std::make_pair(number.getInt(), runs[number.getInt()]++);
  }

  LogicalResult runWhole() {
    core::Mesh one;
    auto main = whole_->lookupSymbol<FuncOp>("main");
    arguments_ = makeArguments(main);
    llvm::SmallVector<Everywhere> arguments;
    for (const nn::Tensor& tensor : arguments_) arguments.push_back({tensor});
    std::map<int64_t, int64_t> runs;
    auto results = partition::interpretEverywhere(
        main, one, arguments,
        [&](Operation* op, llvm::ArrayRef<Everywhere> values) {
          if (auto number = key(op, runs))
            for (const Everywhere& value : values)
              record_[*number].push_back(value.front());
        });
    if (mlir::failed(results)) return failure();
    for (const Everywhere& result : *results)
      results_.push_back(result.front());
    return success();
  }

  LogicalResult runDivided(mlir::ModuleOp module) {
    auto main = module.lookupSymbol<FuncOp>("main");
    llvm::SmallVector<Everywhere> arguments;
    for (auto [i, tensor] : llvm::enumerate(arguments_)) {
      auto sharding = sharding::toCore(
          main.getArgAttrOfType<dist::ShardingAttr>(i, dist::kShardingAttr),
          plan_.mesh);
      arguments.push_back(
          partition::scatterTensor(tensor, plan_.mesh, *sharding));
    }
    std::map<int64_t, int64_t> runs;
    auto results = partition::interpretEverywhere(
        main, plan_.mesh, arguments,
        [&](Operation* op, llvm::ArrayRef<Everywhere> values) {
          if (auto number = key(op, runs)) compare(op, *number, values);
        });
    if (mlir::failed(results)) return failure();
    // What users get, placed as they get it.
    for (auto [i, result] : llvm::enumerate(*results)) {
      auto sharding = sharding::toCore(
          main.getResultAttrOfType<dist::ShardingAttr>(i, dist::kShardingAttr),
          plan_.mesh);
      judge(partition::assembleTensor(result, plan_.mesh, results_[i].type(),
                                      *sharding),
            results_[i], "result " + std::to_string(i));
    }
    return success();
  }

  void compare(Operation* op, std::pair<int64_t, int64_t> number,
               llvm::ArrayRef<Everywhere> values) {
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
      judge(
          found, expected[i],
          op->getName().getStringRef().str() + " at " + describe(op->getLoc()));
    }
  }

  void judge(const nn::Tensor& found, const nn::Tensor& expected,
             const std::string& what) {
    const double distance = distanceOf(found, expected);
    ++compared_;
    largest_ = std::max(largest_, std::isnan(distance) ? 0 : distance);
    if (!first_.empty() || distance <= kTolerance) return;
    first_ = what + (std::isnan(distance)
                         ? std::string(": uses rows beyond a dimension's end")
                         : llvm::formatv(": differs by {0:E2} of the largest "
                                         "value",
                                         distance)
                               .str());
  }

  // Largest difference over the largest magnitude; NaN where one has NaN and
  // the other has none.
  static double distanceOf(const nn::Tensor& found,
                           const nn::Tensor& expected) {
    double largest = 0, distance = 0;
    for (int64_t i = 0; i < found.size(); ++i) {
      const double f = found.isFloat() ? found.getFloat(i) : found.getInt(i);
      const double e =
          found.isFloat() ? expected.getFloat(i) : expected.getInt(i);
      if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
      if (f == e || (std::isnan(f) && std::isnan(e))) continue;
      if (std::isnan(f) || std::isnan(e)) return std::nan("");
      distance = std::max(distance, std::abs(f - e));
    }
    return distance / std::max(largest, 1e-30);
  }

  mlir::OwningOpRef<mlir::ModuleOp> whole_;
  const plan::Plan& plan_;
  std::vector<nn::Tensor> arguments_, results_;
  Record record_;
  int64_t compared_ = 0;
  double largest_ = 0;
  std::string first_;
};

}  // namespace

FailureOr<llvm::json::Value> verifyPlan(mlir::ModuleOp module,
                                        const plan::Plan& plan) {
  return Verification(module, plan).run();
}

void printVerification(const llvm::json::Value& verification,
                       llvm::raw_ostream& stream) {
  const llvm::json::Object& facts = *verification.getAsObject();
  stream << llvm::formatv(
      "mesh {0}: compared {1} values of operations on {2} devices with the "
      "undivided model\n",
      *facts.getString("mesh"), *facts.getInteger("compared"),
      *facts.getInteger("devices"));
  if (auto first = facts.getString("first"))
    stream << "NOT the same model; first difference: " << *first << "\n";
  else
    stream << llvm::formatv(
        "the same model: largest difference {0:E2} of a "
        "value's largest element\n",
        *facts.getNumber("largest"));
}

}  // namespace partita::driver
