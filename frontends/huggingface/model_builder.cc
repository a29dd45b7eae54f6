// Builds @main: its arguments, the functions of layers and the calls to them.
#include "frontends/huggingface/builder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

namespace partita::huggingface {

namespace func = mlir::func;
using mlir::RankedTensorType;

// Writes the body of a layer; its weights become arguments after the inputs.
class ModelBuilder::LayerBuilder : public Builder {
 public:
  LayerBuilder(StringRef kind, func::FuncOp func, bool training, Value seed)
      : Builder(func.getContext(), func.getLoc(), training),
        kind_(kind),
        block_(&func.getBody().front()) {
    builder_.setInsertionPointToEnd(block_);
    seed_ = seed;
  }

  Value weight(const std::string& name, ArrayRef<int64_t> shape, Init init,
               StringRef kind) override {
    // Operations after this belong to the module of the weight:
    // "block.attn.c_proj".
    loc_ = mlir::NameLoc::get(builder_.getStringAttr(
        kind_ + "." + StringRef(name).rsplit('.').first));
    weights.push_back({name, Shape(shape), init, kind.str()});
    return block_->addArgument(f32(shape), loc_);
  }

  std::vector<WeightSpec> weights;

 private:
  std::string kind_;
  mlir::Block* block_;
};

ModelBuilder::ModelBuilder(mlir::MLIRContext* context, Config& config,
                           Weights& weights, const HfOptions& options,
                           ArrayRef<StringRef> dims,
                           ArrayRef<StringRef> optional_inputs)
    : Builder(context, config.loc(), options.training),
      config_(config),
      weights_(weights),
      options_(options) {
  context->loadDialect<func::FuncDialect, mlir::arith::ArithDialect,
                       mlir::math::MathDialect, nn::NNDialect>();
  for (const auto& [name, size] : options.dims) {
    if (!llvm::is_contained(dims, name))
      config.complain("dimension '" + name + "': expected one of " +
                      llvm::join(dims, ", "));
    else if (size < 1 || size >= int64_t{1} << 31)
      config.complain("dimension '" + name +
                      "': expected a size from 1 to 2147483647, found " +
                      std::to_string(size));
  }
  if (options.optional_inputs)
    for (const std::string& name : *options.optional_inputs)
      if (!llvm::is_contained(optional_inputs, name))
        config.complain("optional input '" + name + "': expected " +
                        (optional_inputs.empty()
                             ? "none"
                             : "one of " + llvm::join(optional_inputs, ", ")));
  module_ = mlir::ModuleOp::create(loc_);
  builder_.setInsertionPointToEnd(module_->getBody());
  main_ = func::FuncOp::create(builder_, loc_, "main",
                               builder_.getFunctionType({}, {}));
  builder_.setInsertionPointToEnd(main_.addEntryBlock());
}

int64_t ModelBuilder::dim(const char* name, int64_t fallback) const {
  const auto place = options_.dims.find(name);
  if (place != options_.dims.end()) return place->second;
  if (!options_.small_dims) return fallback;
  return llvm::StringSwitch<int64_t>(name)
      .Case("batch", 3)
      .Case("seq", std::min<int64_t>(fallback, 8))
      .Case("decoder_seq", std::min<int64_t>(fallback, 6))
      .Default(fallback);
}

bool ModelBuilder::takes(StringRef optional_input, bool fallback) const {
  return options_.optional_inputs
             ? llvm::is_contained(*options_.optional_inputs, optional_input)
             : fallback;
}

void ModelBuilder::expectAtMost(const char* dim, int64_t size, int64_t limit,
                                const char* reason) {
  if (size <= limit) return;
  const bool is_cache = options_.cache && StringRef(dim) == "seq";
  config_.complain(
      (is_cache ? "length of the cache: expected at most "
                : "dimension '" + std::string(dim) + "': expected at most ") +
      std::to_string(limit) + " (" + reason + "), found " +
      std::to_string(size) + (is_cache ? "; --cache-length" : "; --dim") +
      " sets it");
}

Value ModelBuilder::argument(RankedTensorType type, StringRef kind,
                             StringRef name, mlir::Attribute source) {
  mlir::NamedAttrList attributes;
  if (kind != "input" && name.contains('*'))
    attributes.set(nn::kPartsAttr, builder_.getUnitAttr());
  attributes.set(nn::kKindAttr, builder_.getStringAttr(kind));
  attributes.set(nn::kNameAttr, builder_.getStringAttr(name));
  if (source) attributes.set(nn::kSourceAttr, source);
  argument_attributes_.push_back(
      attributes.getDictionary(builder_.getContext()));
  return main_.getBody().front().addArgument(
      type, mlir::NameLoc::get(builder_.getStringAttr(name)));
}

Value ModelBuilder::input(const std::string& name, ArrayRef<int64_t> shape,
                          bool integer) {
  return argument(integer ? i64(shape) : f32(shape), "input", name, {});
}

void ModelBuilder::seedInput(ArrayRef<double> dropouts) {
  if (!training_ || llvm::all_of(dropouts, [](double p) { return p <= 0.0; }))
    return;
  seed_ = argument(i64({}), "input", "seed", {});
  mlir::NamedAttrList attributes(argument_attributes_.back());
  attributes.set(nn::kRoleAttr, builder_.getStringAttr("seed"));
  argument_attributes_.back() = attributes.getDictionary(builder_.getContext());
}

Value ModelBuilder::weight(const std::string& name, ArrayRef<int64_t> shape,
                           Init init, StringRef kind) {
  loc_ = mlir::NameLoc::get(
      builder_.getStringAttr(StringRef(name).rsplit('.').first));
  const bool in_parts = StringRef(name).contains('*');
  const Weights::Source source =
      in_parts ? weights_.parts(name, shape, init, builder_.getContext())
               : weights_.source(name, shape, init, builder_.getContext());
  return argument(f32(shape), kind, source.name, source.data);
}

Value ModelBuilder::state(const std::string& name, ArrayRef<int64_t> shape,
                          mlir::Type element) {
  RankedTensorType type = f32(shape);
  if (element) type = type.clone(element);
  return argument(type, "state", name,
                  nn::InitAttr::get(builder_.getContext(), "zeros",
                                    builder_.getF64FloatAttr(0), /*seed=*/0));
}

void ModelBuilder::update(const std::string& name, Value value) {
  updates_.emplace_back(name, value);
}

ModelBuilder::Layer ModelBuilder::define(StringRef kind, ArrayRef<Value> inputs,
                                         Body body) {
  const int number = kinds_[kind.str()]++;
  const std::string name =
      kind.str() + (number == 0 ? "" : "_" + std::to_string(number));
  mlir::OpBuilder at_end = mlir::OpBuilder::atBlockEnd(module_->getBody());
  const auto loc = mlir::NameLoc::get(builder_.getStringAttr(name));
  const llvm::SmallVector<mlir::Type> input_types(
      ValueRange(inputs).getTypes());
  auto function = func::FuncOp::create(
      at_end, loc, name, builder_.getFunctionType(input_types, {}));
  function.setPrivate();
  mlir::Block* block = function.addEntryBlock();
  LayerBuilder layer(name, function, training_,
                     seed_ ? Value(block->getArguments().back()) : Value());
  // A copy, because weights add arguments while the body runs.
  ValueList arguments(block->args_begin(), block->args_end());
  if (seed_) arguments.pop_back();
  const ValueList results = body(layer, arguments);
  func::ReturnOp::create(layer.ops(), loc, results);
  function.setType(builder_.getFunctionType(block->getArgumentTypes(),
                                            ValueRange(results).getTypes()));
  return {function, std::move(layer.weights)};
}

ValueList ModelBuilder::layer(StringRef kind, const std::string& prefix,
                              ArrayRef<Value> given, Body body,
                              StringRef variant) {
  ValueList inputs(given);
  if (seed_) {
    inputs.push_back(seed_);
    seed_ = nextSeed(seed_, 3202034522624059733, 1);
  }
  std::string key = (kind + "|" + variant).str();
  llvm::raw_string_ostream stream(key);
  for (const Value input : inputs) stream << "|" << input.getType();
  auto place = layers_.find(key);
  if (place == layers_.end())
    place = layers_.emplace(key, define(kind, inputs, body)).first;
  const Layer& layer = place->second;
  ValueList operands(inputs);
  for (const WeightSpec& spec : layer.weights)
    operands.push_back(
        weight(prefix + spec.name, spec.shape, spec.init, spec.kind));
  loc_ =
      mlir::NameLoc::get(builder_.getStringAttr(StringRef(prefix).rtrim('.')));
  auto call = func::CallOp::create(builder_, loc_, layer.func, operands);
  return ValueList(call.getResults());
}

mlir::OwningOpRef<mlir::ModuleOp> ModelBuilder::finish(
    ArrayRef<std::pair<Value, const char*>> results) {
  if (failed(weights_.finish(config_.loc()))) return nullptr;
  ValueList values;
  llvm::SmallVector<mlir::DictionaryAttr> names;
  for (const auto& [value, name] : results) {
    values.push_back(value);
    mlir::NamedAttrList attributes;
    attributes.set(nn::kNameAttr, builder_.getStringAttr(name));
    names.push_back(attributes.getDictionary(builder_.getContext()));
  }
  for (const auto& [name, value] : updates_) {
    values.push_back(value);
    names.push_back(builder_.getDictionaryAttr(
        builder_.getNamedAttr(nn::kUpdatesAttr, builder_.getStringAttr(name))));
  }
  func::ReturnOp::create(builder_, config_.loc(), values);
  mlir::Block& block = main_.getBody().front();
  main_.setType(builder_.getFunctionType(block.getArgumentTypes(),
                                         ValueRange(values).getTypes()));
  main_.setAllArgAttrs(argument_attributes_);
  main_.setAllResultAttrs(names);
  if (failed(mlir::verify(*module_))) return nullptr;
  return std::move(module_);
}

}  // namespace partita::huggingface
