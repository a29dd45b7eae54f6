// The signature of @main: inputs with sizes, weights with files, results.
#include <cstring>
#include <string_view>

#include "frontends/onnx/graph_importer.h"
#include "frontends/onnx/open_dims.h"
#include "frontends/onnx/weight_names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

namespace partita::onnx {
namespace {

// Integers and booleans with at most this many elements are constants (shapes,
// indices, masks); larger ones stay in the file.
constexpr uint64_t kMaxConstantElements = 4096;
// So are masks of attention: simplification turns causal ones and windows into
// attributes.
constexpr uint64_t kMaxMaskElements = uint64_t{1} << 22;

// True if f32 numbers are 0 or so low that they hide a score, and both occur.
// No trained weight is like this.
bool isMask(std::string_view bytes) {
  constexpr float kHiding = -1e4f;
  bool hides = false, shows = false;
  for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float number;
    std::memcpy(&number, bytes.data() + at, sizeof(float));
    if (number != 0 && !(number <= kHiding)) return false;
    (number == 0 ? shows : hides) = true;
  }
  return hides && shows;
}

// True if all numbers are the same.
bool isUniform(std::string_view bytes, uint64_t count) {
  if (count == 0 || bytes.size() % count != 0) return false;
  const std::string_view first = bytes.substr(0, bytes.size() / count);
  for (size_t at = 0; at < bytes.size(); at += first.size())
    if (bytes.substr(at, first.size()) != first) return false;
  return true;
}

bool matchesAny(llvm::StringRef name, llvm::ArrayRef<std::string> globs) {
  return llvm::any_of(globs, [&](const std::string& glob) {
    auto pattern = llvm::GlobPattern::create(glob);
    if (pattern) return pattern->match(name);
    llvm::consumeError(pattern.takeError());
    return glob == name;
  });
}

// True if two tensors are equal, or one is the other's transpose. Large tensors
// are compared at a million elements.
bool isSame(std::string_view a, std::string_view b, int64_t rows,
            int64_t columns, bool is_transposed) {
  constexpr uint64_t kCompared = uint64_t{1} << 20;
  const uint64_t count = static_cast<uint64_t>(rows) * columns;
  if (a.size() != b.size() || count == 0 || a.size() % count != 0) return false;
  const uint64_t bytes = a.size() / count;
  const uint64_t step = count <= kCompared ? 1 : (count / kCompared) | 1;
  for (uint64_t i = 0; i < count; i += step) {
    const uint64_t j = is_transposed ? i % columns * rows + i / columns : i;
    if (std::memcmp(&a[i * bytes], &b[j * bytes], bytes) != 0) return false;
  }
  return true;
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
      emitter_(mlir::OpBuilder::atBlockEnd(main.addEntryBlock())),
      signature_(main, emitter_) {
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
  // Tensors that are written back to the file keep their names.
  if (!options_.mark_tensors) folded_ = findFoldedWeights(graph);
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
  scope.values[name] = signature_.addInput(
      name, mlir::RankedTensorType::get(*shape, element.type),
      element.is_unsigned);
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
  // Folded with its scale, a quantized weight would not be integers any more.
  // Masks are unsigned.
  const bool is_quantized = element.type.isInteger(8) && !element.is_unsigned &&
                            tensor.dims.size() >= 2;
  bool is_small = mlir::isa<mlir::FloatType>(element.type)
                      ? count <= 1 && !is_owned
                      : count <= kMaxConstantElements && !is_quantized;
  // Data whose layout in the file differs from memory (sub-byte types, integers
  // in varints) must be a constant.
  bool is_packed =
      element.type.getIntOrFloatBitWidth() < 8 && !element.type.isInteger(1);
  const bool is_mask = element.type.isF32() && tensor.dims.size() >= 2 &&
                       count <= kMaxMaskElements && *range &&
                       isMask((*range)->bytes);
  const bool is_fill = isFill(name) && count <= kMaxMaskElements && *range &&
                       isUniform((*range)->bytes, count);
  if (!is_small && !is_mask && !is_fill && *range && !is_packed)
    return addWeight(tensor, name);
  auto attr = files_.decode(tensor, main_.getContext(), message);
  if (failed(attr)) {
    emitter_.error("initializer '" + name + "' (byte " +
                   llvm::Twine(tensor.offset) + "): " + message);
    return failure();
  }
  if (is_fill && !attr->isSplat())
    attr = mlir::DenseElementsAttr::get(attr->getType(),
                                        *attr->value_begin<mlir::Attribute>());
  return emitter_.constant(*attr, element.is_unsigned);
}

Val GraphImporter::restore(const TensorProto& tensor,
                           const FoldedWeight& folded, Scope& scope) {
  mlir::Type element = getElementType(tensor.type, main_.getContext()).type;
  std::string message;
  auto range = files_.locate(tensor, message);
  if (!mlir::isa_and_nonnull<mlir::FloatType>(element) || failed(range) ||
      !*range)
    return {};
  if (!folded.other) {
    auto value = addWeight(tensor, folded.name);
    return failed(value) ? Val() : *value;
  }
  const TensorProto& other = *folded.other;
  std::vector<int64_t> dims = other.dims;
  if (folded.other_is_transposed) std::reverse(dims.begin(), dims.end());
  auto other_range = files_.locate(other, message);
  if (failed(other_range) || !*other_range || other.type != tensor.type ||
      dims != tensor.dims ||
      !isSame((*range)->bytes, (*other_range)->bytes, dims[0], dims[1],
              folded.other_is_transposed)) {
    mlir::emitRemark(emitter_.loc())
        << "expected '" << llvm::StringRef(tensor.name) << "' to be "
        << (folded.other_is_transposed ? "the transpose of '" : "equal to '")
        << llvm::StringRef(other.name)
        << "', which the exporter made it from; they differ, so they are "
           "separate weights";
    return {};
  }
  Val value = lookup(llvm::StringRef(other.name), scope);
  if (value && folded.other_is_transposed)
    value = emitter_.transpose(value, {1, 0});
  return value;
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
  auto source =
      nn::FileAttr::get(main_.getContext(), (*range)->path, (*range)->offset,
                        (*range)->bytes.size(), element.type);
  return signature_.addWeight(
      name, mlir::RankedTensorType::get(tensor.dims, element.type),
      element.is_unsigned, kindOf(name, element.type), source);
}

std::string GraphImporter::kindOf(llvm::StringRef name,
                                  mlir::Type element) const {
  if (matchesAny(name, options_.parameter_globs)) return "parameter";
  if (matchesAny(name, options_.constant_globs)) return "constant";
  if (isAnonymous(name)) return "constant";
  bool is_float = mlir::isa<mlir::FloatType>(element);
  return is_float && !isBufferName(name) ? "parameter" : "buffer";
}

LogicalResult GraphImporter::finishMain(const Graph& graph, Scope& scope) {
  emitter_.start(main_.getLoc());
  llvm::SmallVector<builder::Result> results;
  for (const ValueInfo& output : graph.outputs) {
    llvm::StringRef name(output.name);
    Val value = lookup(name, scope);
    if (!value) {
      if (emitter_.failed()) return failure();
      if (findSequence(name, scope))
        return unsupported(main_.getLoc(), "type sequence",
                           "output '" + name +
                               "' is a sequence: expected outputs that are "
                               "tensors");
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
    results.push_back({name.str(), value});
    if (scope.counts.contains(name))
      return unsupported(main_.getLoc(), "NonZero",
                         "output '" + name +
                             "' is the number of rows that a NonZero chooses: "
                             "shapes are static");
  }
  signature_.finish(results);
  if (failed(chosen_.resolve())) {
    report_.unsupported.push_back("NonZero");
    return failure();
  }
  if (annotations_) annotations_->finish(main_);
  return success();
}

}  // namespace partita::onnx
