// The signature of @main: inputs with sizes, weights with files, results.
#include "frontends/onnx/graph_importer.h"
#include "frontends/onnx/open_dims.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

namespace partita::onnx {
namespace {

// Integers and booleans with at most this many elements are constants (shapes,
// indices, masks); larger ones stay in the file.
constexpr uint64_t kMaxConstantElements = 4096;

bool matchesAny(llvm::StringRef name, llvm::ArrayRef<std::string> globs) {
  return llvm::any_of(globs, [&](const std::string& glob) {
    auto pattern = llvm::GlobPattern::create(glob);
    if (pattern) return pattern->match(name);
    llvm::consumeError(pattern.takeError());
    return glob == name;
  });
}

// True for names that exporters invent for tensors outside any module:
// "onnx::MatMul_12", "/attn/Constant_3", "val_7", "15".
bool isAnonymous(llvm::StringRef name) {
  if (name.contains("::") || name.starts_with("/")) return true;
  if (llvm::all_of(name, llvm::isDigit)) return true;
  auto [stem, number] = name.rsplit('_');
  bool is_numbered = !number.empty() && llvm::all_of(number, llvm::isDigit);
  return is_numbered &&
         llvm::is_contained(
             {"val", "lifted_tensor", "scalar_tensor", "const", "Constant"},
             stem);
}

// True for names of stored but untrained state of a module.
bool isBufferName(llvm::StringRef name) {
  llvm::StringRef last = name.rsplit('.').second;
  if (last.empty()) last = name;
  return last.starts_with("running_") || last == "inv_freq" ||
         last == "position_ids" || last == "masked_bias" ||
         last == "num_batches_tracked" ||
         last.starts_with("relative_position_index");
}

}  // namespace

GraphImporter::GraphImporter(const Model& model, DataFiles& files,
                             const ImportOptions& options, ImportReport& report,
                             mlir::func::FuncOp main)
    : model_(model),
      files_(files),
      options_(options),
      report_(report),
      main_(main),
      emitter_(mlir::OpBuilder::atBlockEnd(main.addEntryBlock())) {
  emitter_.start(main.getLoc());
}

LogicalResult GraphImporter::run() {
  Scope scope;
  const Graph& graph = model_.graph;
  if (model_.opsets.empty()) {
    return mlir::emitError(main_.getLoc())
           << "expected an opset_import (field 8 of ModelProto): the file is "
              "truncated, or not an ONNX model";
  }
  if (failed(declareOpsets(model_.opsets, scope)) ||
      failed(declareInitializers(graph, scope)) || failed(checkDimNames())) {
    return failure();
  }
  auto annotations =
      Annotations::read(model_, options_.configuration, main_.getLoc(),
                        [&](const Node& node) { return locationOf(node); });
  if (failed(annotations)) return failure();
  annotations_ = std::move(*annotations);
  if (annotations_)
    annotations_->addMesh(main_->getParentOfType<mlir::ModuleOp>());
  // Checks all operators first, so that one message lists all unsupported ones.
  if (failed(checkSupported(graph.nodes, scope))) return failure();
  for (const ValueInfo& input : graph.inputs) {
    // Before IR version 4, initializers must also be listed as inputs.
    if (scope.initializers.count(llvm::StringRef(input.name))) continue;
    if (failed(declareInput(input, scope))) return failure();
  }
  if (failed(importNodes(graph.nodes, scope))) return failure();
  return finishMain(graph, scope);
}

LogicalResult GraphImporter::declareInitializers(const Graph& graph,
                                                 Scope& scope) {
  if (!graph.sparse_initializers.empty()) {
    return unsupported(main_.getLoc(), "sparse initializer",
                       "sparse initializers are not supported");
  }
  for (const TensorProto& tensor : graph.initializers) {
    if (!scope.initializers.try_emplace(llvm::StringRef(tensor.name), &tensor)
             .second) {
      return mlir::emitError(main_.getLoc())
             << "initializer '" << llvm::StringRef(tensor.name)
             << "' exists twice";
    }
  }
  return success();
}

std::string GraphImporter::dimName(const ValueInfo& input, size_t i) const {
  return onnx::dimName(input, i);
}

llvm::SmallVector<std::string> GraphImporter::openDims() const {
  const std::vector<std::string> names = onnx::openDims(model_.graph);
  return {names.begin(), names.end()};
}

LogicalResult GraphImporter::checkDimNames() {
  llvm::SmallVector<std::string> known = openDims();
  for (auto& [name, size] : options_.dims) {
    if (!llvm::is_contained(known, name)) {
      return mlir::emitError(main_.getLoc())
             << "the inputs have no dimension named '" << name
             << "'; they have: "
             << (known.empty() ? "none" : llvm::join(known, ", "));
    }
    if (size < 0)
      return mlir::emitError(main_.getLoc())
             << "dimension '" << name << "' must not be negative";
  }
  return success();
}

FailureOr<Shape> GraphImporter::inputShape(const ValueInfo& input) {
  llvm::StringRef name(input.name);
  auto given = options_.input_shapes.find(name.str());
  if (given != options_.input_shapes.end()) {
    bool fits = !input.has_shape || input.shape.size() == given->second.size();
    for (size_t i = 0; fits && input.has_shape && i < input.shape.size(); ++i) {
      fits =
          input.shape[i].value < 0 || input.shape[i].value == given->second[i];
    }
    if (fits) return Shape(given->second.begin(), given->second.end());
    return mlir::emitError(main_.getLoc())
           << "the shape " << toString(Dims(given->second))
           << " given for input '" << name << "' contradicts the model's";
  }
  if (!input.has_shape) {
    return mlir::emitError(main_.getLoc())
           << "input '" << name
           << "' has no shape, not even a rank: export the model with one";
  }
  Shape shape;
  for (size_t i = 0; i < input.shape.size(); ++i) {
    auto size = options_.dims.find(dimName(input, i));
    if (input.shape[i].value >= 0) {
      shape.push_back(input.shape[i].value);
    } else if (size != options_.dims.end()) {
      shape.push_back(size->second);
    } else {
      // One message lists all of them.
      llvm::SmallVector<std::string> missing = openDims();
      llvm::erase_if(missing, [&](const std::string& dim) {
        return options_.dims.count(dim) > 0;
      });
      return mlir::emitError(main_.getLoc())
             << "sizes are not known: " << llvm::join(missing, ", ")
             << "; give them, as in --dim " << llvm::join(missing, "=8,")
             << "=8";
    }
  }
  return shape;
}

LogicalResult GraphImporter::declareInput(const ValueInfo& input,
                                          Scope& scope) {
  llvm::StringRef name(input.name);
  if (scope.values.count(name))
    return mlir::emitError(main_.getLoc())
           << "input '" << name << "' exists twice";
  ElementType element = getElementType(input.type, main_.getContext());
  if (!input.other_type.empty() || !element.type) {
    std::string type = input.other_type.empty() ? toString(input.type)
                                                : std::string(input.other_type);
    return unsupported(
        main_.getLoc(), "type " + type,
        "input '" + name + "' is of type " + type + ": not supported");
  }
  auto constant = options_.constant_inputs.find(name.str());
  if (constant != options_.constant_inputs.end()) {
    if (constant->second.getElementType() != element.type) {
      return mlir::emitError(main_.getLoc())
             << "the constant given for input '" << name << "' must be of type "
             << toString(input.type);
    }
    scope.values[name] =
        emitter_.constant(constant->second, element.is_unsigned);
    return success();
  }
  auto shape = inputShape(input);
  if (failed(shape)) return failure();
  if (!elementCount(*shape)) {
    return mlir::emitError(main_.getLoc())
           << "input '" << name << "' has an impossible shape "
           << toString(*shape);
  }
  mlir::Location loc =
      mlir::NameLoc::get(mlir::StringAttr::get(main_.getContext(), name));
  Val value = {main_.front().addArgument(
                   mlir::RankedTensorType::get(*shape, element.type), loc),
               element.is_unsigned};
  scope.values[name] = value;
  inputs_.emplace_back(name.str(), value);
  return success();
}

FailureOr<Val> GraphImporter::materialize(const TensorProto& tensor,
                                          llvm::StringRef name) {
  ElementType element = getElementType(tensor.type, main_.getContext());
  if (!element.type) {
    emitter_.error("'" + name + "' is of type " + toString(tensor.type) +
                   ": not supported");
    report_.unsupported.push_back("type " + toString(tensor.type));
    return failure();
  }
  std::string message;
  auto range = files_.locate(tensor, message);
  if (failed(range)) {
    emitter_.error("initializer '" + name + "' (byte " +
                   llvm::Twine(tensor.offset) + "): " + message);
    return failure();
  }
  uint64_t count = *elementCount(tensor.dims);
  // A single float is a constant unless a module owns it: the bias of a
  // one-channel layer is trained.
  bool is_owned = name.contains('.') && !isAnonymous(name) &&
                  !isBufferName(name) &&
                  mlir::isa<mlir::FloatType>(element.type);
  bool is_small = mlir::isa<mlir::FloatType>(element.type)
                      ? count <= 1 && !is_owned
                      : count <= kMaxConstantElements;
  // Data whose layout in the file differs from memory (sub-byte types, integers
  // in varints) must be a constant.
  bool is_packed =
      element.type.getIntOrFloatBitWidth() < 8 && !element.type.isInteger(1);
  if (!is_small && *range && !is_packed) return addWeight(tensor, name);
  auto attr = files_.decode(tensor, main_.getContext(), message);
  if (failed(attr)) {
    emitter_.error("initializer '" + name + "' (byte " +
                   llvm::Twine(tensor.offset) + "): " + message);
    return failure();
  }
  return emitter_.constant(*attr, element.is_unsigned);
}

FailureOr<Val> GraphImporter::addWeight(const TensorProto& tensor,
                                        llvm::StringRef name) {
  std::string message;
  auto range = files_.locate(tensor, message);
  if (failed(range) || !*range) {
    emitter_.error("initializer '" + name + "': " + message);
    return failure();
  }
  ElementType element = getElementType(tensor.type, main_.getContext());
  mlir::Location loc =
      mlir::NameLoc::get(mlir::StringAttr::get(main_.getContext(), name));
  auto type = mlir::RankedTensorType::get(tensor.dims, element.type);
  weights_.push_back(
      {main_.front().addArgument(type, loc), &tensor, name.str(), **range});
  return Val{weights_.back().argument, element.is_unsigned};
}

// Knuth's linear congruential generator (MMIX). Unlike a counter, it is the
// same operation in each layer, also after folding.
Val GraphImporter::nextSeed() {
  if (!seed_) {
    mlir::Builder builder(main_.getContext());
    seed_ = {main_.front().insertArgument(
                 static_cast<unsigned>(inputs_.size()),
                 mlir::RankedTensorType::get({}, builder.getI64Type()),
                 main_.getLoc()),
             false};
    std::string name = "seed";
    while (
        llvm::any_of(inputs_, [&](auto& input) { return input.first == name; }))
      name += "_";
    inputs_.emplace_back(name, seed_);
    next_seed_ = seed_;
  }
  const auto scalar = [&](int64_t value) {
    return emitter_.constant(mlir::DenseElementsAttr::get(seed_.type(), value),
                             false);
  };
  Val own = next_seed_;
  next_seed_ = emitter_.add(emitter_.mul(own, scalar(6364136223846793005)),
                            scalar(1442695040888963407));
  return own;
}

std::string GraphImporter::kindOf(const Weight& weight) const {
  llvm::StringRef name = weight.name;
  if (matchesAny(name, options_.parameter_globs)) return "parameter";
  if (matchesAny(name, options_.constant_globs)) return "constant";
  if (isAnonymous(name)) return "constant";
  bool is_float = mlir::isa<mlir::FloatType>(
      mlir::getElementTypeOrSelf(weight.argument.getType()));
  return is_float && !isBufferName(name) ? "parameter" : "buffer";
}

void GraphImporter::eraseUnused() {
  mlir::Block& body = main_.front();
  for (mlir::Operation& op : llvm::make_early_inc_range(llvm::reverse(body))) {
    if (mlir::isOpTriviallyDead(&op)) op.erase();
  }
  llvm::erase_if(weights_, [&](Weight& weight) {
    if (!weight.argument.use_empty()) return false;
    weight.argument.getOwner()->eraseArgument(weight.argument.getArgNumber());
    return true;
  });
}

void GraphImporter::annotateArguments() {
  mlir::Builder builder(main_.getContext());
  auto set = [&](mlir::Value argument, llvm::StringRef name,
                 llvm::StringRef kind, bool is_unsigned) {
    unsigned index = mlir::cast<mlir::BlockArgument>(argument).getArgNumber();
    main_.setArgAttr(index, nn::kKindAttr, builder.getStringAttr(kind));
    main_.setArgAttr(index, nn::kNameAttr, builder.getStringAttr(name));
    if (is_unsigned)
      main_.setArgAttr(index, nn::kUnsignedAttr, builder.getUnitAttr());
  };
  for (auto& [name, input] : inputs_)
    set(input.value, name, "input", input.is_unsigned);
  if (seed_)
    main_.setArgAttr(
        mlir::cast<mlir::BlockArgument>(seed_.value).getArgNumber(),
        nn::kRoleAttr, builder.getStringAttr("seed"));
  for (const Weight& weight : weights_) {
    ElementType stored =
        getElementType(weight.tensor->type, main_.getContext());
    set(weight.argument, weight.name, kindOf(weight), stored.is_unsigned);
    auto source = nn::FileAttr::get(main_.getContext(), weight.range.path,
                                    weight.range.offset,
                                    weight.range.bytes.size(), stored.type);
    main_.setArgAttr(weight.argument.getArgNumber(), nn::kSourceAttr, source);
  }
}

LogicalResult GraphImporter::finishMain(const Graph& graph, Scope& scope) {
  mlir::OpBuilder& builder = emitter_.builder();
  emitter_.start(main_.getLoc());
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<mlir::Attribute> attributes;
  for (const ValueInfo& output : graph.outputs) {
    llvm::StringRef name(output.name);
    Val value = lookup(name, scope);
    if (!value) {
      if (emitter_.failed()) return failure();
      return mlir::emitError(main_.getLoc())
             << "no node computes output '" << name << "'";
    }
    DataType type = getDataType(value.elementType());
    if (output.type != DataType::kUndefined && output.type != type) {
      return mlir::emitError(main_.getLoc())
             << "output '" << name << "' is declared as "
             << toString(output.type) << ", but its value is "
             << toString(type);
    }
    results.push_back(value.value);
    llvm::SmallVector<mlir::NamedAttribute> named = {
        builder.getNamedAttr(nn::kNameAttr, builder.getStringAttr(name))};
    if (value.is_unsigned)
      named.push_back(
          builder.getNamedAttr(nn::kUnsignedAttr, builder.getUnitAttr()));
    attributes.push_back(builder.getDictionaryAttr(named));
  }
  mlir::func::ReturnOp::create(builder, main_.getLoc(), results);
  eraseUnused();
  main_.setFunctionType(builder.getFunctionType(
      main_.front().getArgumentTypes(), mlir::TypeRange(results)));
  main_.setAllResultAttrs(attributes);
  annotateArguments();
  if (annotations_) annotations_->finish(main_);
  return success();
}

}  // namespace partita::onnx
