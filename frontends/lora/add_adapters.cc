// Follows weights from parameters of @main through calls to products, and puts
// a second, narrow product beside each.
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "dialects/nn/dialect.h"
#include "frontends/huggingface/weights.h"
#include "frontends/lora/adapter_files.h"
#include "frontends/lora/lora.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::lora {
namespace {

using huggingface::Init;
using huggingface::Weights;
using llvm::ArrayRef;
using llvm::StringRef;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

constexpr char kFile[] = "adapter_model.safetensors";
constexpr StringRef kWeight = ".weight";
constexpr int kMostListed = 12;  // modules in a message

mlir::RankedTensorType typeOf(Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

// A product with a weight [out, in] or [in, out], perhaps transposed, or
// converted from integers, on the way.
struct Product {
  nn::DotGeneralOp op;
  bool weight_is_rhs = false;
};

// True for an operation that moves a weight, or gives the numbers of a weight
// that partita quantize rounded: scale * integer, or groups of 4 bits.
bool passesWeight(mlir::OpOperand& use) {
  mlir::Operation* op = use.getOwner();
  if (llvm::isa<mlir::arith::MulFOp>(op))
    return use.get().getDefiningOp<mlir::arith::SIToFPOp>() != nullptr;
  if (llvm::isa<nn::ReshapeOp>(op))
    return use.get().getDefiningOp<nn::DequantizeOp>() != nullptr;
  if (llvm::isa<mlir::arith::SIToFPOp, nn::DequantizeOp>(op))
    return use.getOperandNumber() == 0;
  return llvm::isa<nn::TransposeOp>(op);
}

// Appends the products that read `weight`; calls with it are not followed, and
// a call with its transpose counts as another reader. False if
// anything else reads it, or if a product does not contract one dimension of
// it.
bool findProducts(Value weight, llvm::SmallVectorImpl<Product>& products,
                  bool is_moved = false) {
  for (mlir::OpOperand& use : weight.getUses()) {
    if (passesWeight(use)) {
      if (!findProducts(use.getOwner()->getResult(0), products, true))
        return false;
      continue;
    }
    if (llvm::isa<CallOp>(use.getOwner()) && !is_moved) continue;
    auto op = llvm::dyn_cast<nn::DotGeneralOp>(use.getOwner());
    if (!op || !op.getLhsBatch().empty() || op.getLhsContract().size() != 1 ||
        op.getLhs() == op.getRhs())
      return false;
    products.push_back({op, use.getOperandNumber() == 1});
  }
  return true;
}

// Sizes of the weight's rows and columns: [out, in].
struct Sizes {
  int64_t out = 0, in = 0;
};
Sizes sizesOf(const Product& product) {
  auto op = product.op;
  const Value weight = product.weight_is_rhs ? op.getRhs() : op.getLhs();
  const int64_t contracted =
      product.weight_is_rhs ? op.getRhsContract()[0] : op.getLhsContract()[0];
  const auto shape = typeOf(weight).getShape();
  return {shape[1 - contracted], shape[contracted]};
}

// Adds scale * B A x to the product's result.
void addBeside(const Product& product, Value a, Value b, double scale) {
  nn::DotGeneralOp op = product.op;
  mlir::OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  const mlir::Location loc = op.getLoc();
  const Value x = product.weight_is_rhs ? op.getLhs() : op.getRhs();
  const int64_t contracted =
      product.weight_is_rhs ? op.getLhsContract()[0] : op.getRhsContract()[0];
  const auto dot = [&](Value lhs, Value rhs, int64_t left, int64_t right) {
    return nn::DotGeneralOp::create(
               builder, loc, lhs, rhs, ArrayRef<int64_t>(), ArrayRef<int64_t>(),
               ArrayRef<int64_t>{left}, ArrayRef<int64_t>{right})
        .getResult();
  };
  Value inner = product.weight_is_rhs ? dot(x, a, contracted, 1)
                                      : dot(a, x, 1, contracted);
  const auto type = typeOf(inner);
  const Value factor = mlir::arith::ConstantOp::create(
      builder, loc,
      mlir::DenseElementsAttr::get(
          type, builder.getFloatAttr(type.getElementType(), scale)));
  inner = mlir::arith::MulFOp::create(builder, loc, inner, factor);
  const Value added = product.weight_is_rhs
                          ? dot(inner, b, type.getRank() - 1, 1)
                          : dot(b, inner, 1, 0);
  auto sum = mlir::arith::AddFOp::create(builder, loc, op.getResult(), added);
  op.getResult().replaceAllUsesExcept(sum.getResult(), sum);
}

// Where a weight is read: an argument of a function, and its products there.
struct Site {
  FuncOp function;
  unsigned argument = 0;
  llvm::SmallVector<Product> products;
};

// The parameters of an adapter, as arguments of @main.
struct Adapter {
  Value a, b;
};

class Adapters {
 public:
  Adapters(mlir::ModuleOp module, const Options& options, uint64_t seed)
      : module_(module),
        options_(options),
        weights_(Weights::seeded(seed)),
        symbols_(module),
        main_(module.lookupSymbol<FuncOp>("main")) {}

  LogicalResult run();

 private:
  LogicalResult openFolder();
  bool isTarget(StringRef module) const;
  bool isMatrix(unsigned argument);
  LogicalResult findTargets();
  LogicalResult checkPattern(const std::string& pattern);
  void splitFunctions();
  FailureOr<Sizes> findSites(unsigned argument);
  LogicalResult addParameters(unsigned argument, const Sizes& sizes);
  void addToFunctions();
  // The name of a parameter MODULE.weight without its end; empty for others.
  StringRef moduleOf(unsigned argument);
  mlir::Location where() {
    if (options_.folder.empty()) return module_.getLoc();
    return mlir::FileLineColLoc::get(module_.getContext(), options_.folder, 0,
                                     0);
  }

  mlir::ModuleOp module_;
  const Options& options_;
  Weights weights_;
  mlir::SymbolTable symbols_;
  FuncOp main_;
  llvm::SetVector<unsigned> targets_;  // arguments of @main
  std::map<unsigned, Adapter> adapters_;
  // By function and argument; @main is one of the functions.
  llvm::MapVector<std::pair<mlir::Operation*, unsigned>, Site> sites_;
};

// A name without a glob's characters matches all modules that end with it.
bool matches(const std::string& pattern, StringRef module) {
  if (pattern.find_first_of("*?[{") == std::string::npos)
    return module == pattern || module.ends_with("." + pattern);
  auto glob = llvm::GlobPattern::create(pattern);
  if (glob) return glob->match(module);
  llvm::consumeError(glob.takeError());
  return false;
}

StringRef Adapters::moduleOf(unsigned argument) {
  auto name = main_.getArgAttrOfType<mlir::StringAttr>(argument, nn::kNameAttr);
  StringRef module = name ? name.getValue() : StringRef();
  return module.consume_back(kWeight) ? module : StringRef();
}

LogicalResult Adapters::openFolder() {
  if (options_.folder.empty()) return mlir::success();
  auto opened = Weights::openFile(
      (std::filesystem::path(options_.folder) / kFile).string(),
      module_.getContext());
  if (failed(opened)) return mlir::failure();
  weights_ = *std::move(opened);
  // The same model may be stored as "h.0" and as "transformer.h.0".
  const std::vector<std::string> names = weights_.names();
  for (unsigned i = 0; i < main_.getNumArguments(); ++i) {
    const StringRef module = moduleOf(i);
    if (module.empty()) continue;
    const std::string wanted = (module + kDown).str();
    if (weights_.has(wanted)) return mlir::success();
    for (const std::string& name : names)
      if (StringRef(name).ends_with("." + wanted)) {
        weights_.setBasePrefix(name.substr(0, name.size() - wanted.size()));
        return mlir::success();
      }
  }
  return mlir::success();
}

bool Adapters::isTarget(StringRef module) const {
  if (!options_.folder.empty()) return weights_.has((module + kDown).str());
  return llvm::any_of(options_.targets, [&](const std::string& pattern) {
    return matches(pattern, module);
  });
}

// A matrix of floats, of integers, or of integers in groups.
bool Adapters::isMatrix(unsigned argument) {
  const auto type = llvm::dyn_cast<mlir::RankedTensorType>(
      main_.getArgument(argument).getType());
  if (!type) return false;
  return (type.getRank() == 2 && type.getElementType().isF32()) ||
         ((type.getRank() == 2 || type.getRank() == 3) &&
          type.getElementTypeBitWidth() == 8);
}

LogicalResult Adapters::findTargets() {
  for (unsigned i = 0; i < main_.getNumArguments(); ++i) {
    const StringRef module = moduleOf(i);
    if (!module.empty() && isMatrix(i) &&
        main_.getArgAttr(i, nn::kSourceAttr) && isTarget(module))
      targets_.insert(i);
  }
  for (const std::string& pattern : options_.targets)
    if (mlir::failed(checkPattern(pattern))) return mlir::failure();
  if (!targets_.empty()) return mlir::success();
  return mlir::emitError(where())
         << "--lora: expected adapters of this model, found none that has a "
            "module of it: give the model that they were trained with";
}

LogicalResult Adapters::checkPattern(const std::string& pattern) {
  for (const unsigned argument : targets_)
    if (matches(pattern, moduleOf(argument))) return mlir::success();
  auto error = mlir::emitError(where());
  error << "--lora: expected targets= with modules whose weight is a matrix, "
           "found none that matches '"
        << pattern << "'";
  int listed = 0;
  for (unsigned i = 0; i < main_.getNumArguments() && listed < kMostListed; ++i)
    if (const StringRef module = moduleOf(i); !module.empty())
      error << (listed++ == 0 ? "; the first modules are " : ", ") << module;
  if (listed == 0) error << "; the model has no weights with names";
  return error;
}

// Copies functions for calls with other targets, so that each argument of a
// function is a target in all of its calls or in none.
void Adapters::splitFunctions() {
  llvm::MapVector<mlir::Operation*,
                  std::map<std::vector<unsigned>, llvm::SmallVector<CallOp>>>
      groups;
  for (auto call : main_.getOps<CallOp>()) {
    std::vector<unsigned> adapted;
    for (auto [i, operand] : llvm::enumerate(call.getOperands()))
      if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(operand);
          argument && targets_.contains(argument.getArgNumber()))
        adapted.push_back(static_cast<unsigned>(i));
    groups[symbols_.lookup(call.getCallee())][adapted].push_back(call);
  }
  for (auto& [function, calls] : groups)
    for (auto group = std::next(calls.begin()); group != calls.end(); ++group) {
      auto copy = llvm::cast<FuncOp>(function->clone());
      symbols_.insert(copy);
      for (CallOp call : group->second) call.setCallee(copy.getName());
    }
}

// Finds all places that read a parameter of @main.
FailureOr<Sizes> Adapters::findSites(unsigned argument) {
  const auto refuse = [&]() -> LogicalResult {
    return mlir::emitError(where())
           << "--lora: expected modules that multiply by their weight, found "
           << moduleOf(argument)
           << ", whose weight is read in another way: leave it out";
  };
  std::optional<Sizes> sizes;
  const auto add = [&](FuncOp function, unsigned number) {
    Site site{function, number, {}};
    if (!findProducts(function.getArgument(number), site.products))
      return false;
    for (const Product& product : site.products) {
      const Sizes found = sizesOf(product);
      if (sizes && (found.in != sizes->in || found.out != sizes->out))
        return false;
      sizes = found;
    }
    if (!site.products.empty())
      sites_.try_emplace({function.getOperation(), number}, std::move(site));
    return true;
  };
  for (mlir::OpOperand& use : main_.getArgument(argument).getUses())
    if (auto call = llvm::dyn_cast<CallOp>(use.getOwner()))
      if (!add(symbols_.lookup<FuncOp>(call.getCallee()),
               use.getOperandNumber()))
        return refuse();
  if (!add(main_, argument) || !sizes) return refuse();
  return *sizes;
}

LogicalResult Adapters::addParameters(unsigned argument, const Sizes& sizes) {
  mlir::MLIRContext* context = module_.getContext();
  const std::string module = moduleOf(argument).str();
  const mlir::Type element = mlir::Float32Type::get(context);
  const auto add = [&](const std::string& name, ArrayRef<int64_t> shape,
                       Init init) -> Value {
    const Weights::Source source = weights_.source(name, shape, init, context);
    if (!source.data) return {};
    mlir::NamedAttrList attributes;
    attributes.set(nn::kKindAttr, mlir::StringAttr::get(context, "parameter"));
    attributes.set(nn::kNameAttr, mlir::StringAttr::get(context, name));
    attributes.set(nn::kSourceAttr, source.data);
    const unsigned number = main_.getNumArguments();
    if (mlir::failed(main_.insertArgument(
            number, mlir::RankedTensorType::get(shape, element),
            attributes.getDictionary(context),
            mlir::NameLoc::get(mlir::StringAttr::get(context, name)))))
      return {};
    return main_.getArgument(number);
  };
  Adapter adapter;
  // As torch initialises a linear layer.
  adapter.a = add(module + kDown, {options_.rank, sizes.in},
                  Init::uniform(1 / std::sqrt(static_cast<double>(sizes.in))));
  adapter.b = add(module + kUp, {sizes.out, options_.rank}, Init::zeros());
  if (adapter.a && adapter.b) adapters_[argument] = adapter;
  return mlir::success();
}

void Adapters::addToFunctions() {
  for (auto& [place, site] : sites_) {
    if (site.function == main_) {
      for (const Product& product : site.products)
        addBeside(product, adapters_[site.argument].a,
                  adapters_[site.argument].b, options_.scale());
      continue;
    }
    // All calls have an adapter here; see splitFunctions.
    Adapter inner;
    for (auto call : main_.getOps<CallOp>()) {
      if (symbols_.lookup(call.getCallee()) != site.function) continue;
      const auto outer =
          llvm::cast<mlir::BlockArgument>(call.getOperand(site.argument));
      const Adapter& adapter = adapters_[outer.getArgNumber()];
      if (!inner.a) {
        for (auto [value, given] :
             {std::pair(&inner.a, adapter.a), std::pair(&inner.b, adapter.b)}) {
          const unsigned number = site.function.getNumArguments();
          (void)site.function.insertArgument(
              number, given.getType(), {},
              site.function.getArgument(site.argument).getLoc());
          *value = site.function.getArgument(number);
        }
      }
      call->insertOperands(call->getNumOperands(), {adapter.a, adapter.b});
    }
    for (const Product& product : site.products)
      addBeside(product, inner.a, inner.b, options_.scale());
  }
}

LogicalResult Adapters::run() {
  if (!main_)
    return module_.emitError("expected a function named 'main', found none");
  if (mlir::failed(openFolder()) || mlir::failed(findTargets()))
    return mlir::failure();
  splitFunctions();
  for (const unsigned argument : targets_) {
    const FailureOr<Sizes> sizes = findSites(argument);
    if (mlir::failed(sizes) || mlir::failed(addParameters(argument, *sizes)))
      return mlir::failure();
  }
  if (!weights_.isSeeded() && mlir::failed(weights_.finish(where())))
    return mlir::failure();
  addToFunctions();
  return mlir::success();
}

}  // namespace

LogicalResult addAdapters(mlir::ModuleOp module, const Options& options,
                          uint64_t seed) {
  return Adapters(module, options, seed).run();
}

}  // namespace partita::lora
