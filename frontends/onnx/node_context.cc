// Access to a node's inputs, attributes and outputs. Anything malformed is an
// error at the node.
#include "frontends/onnx/node_context.h"

#include "frontends/onnx/graph_importer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::onnx {
namespace {

// AttributeProto.AttributeType.
enum : int32_t {
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8
};

}  // namespace

NodeContext::NodeContext(GraphImporter& importer, Scope& scope,
                         const Node& node, int64_t opset)
    : e(importer.emitter_),
      node(node),
      opset(opset),
      importer_(importer),
      scope_(scope) {}

Val NodeContext::in(unsigned i) {
  return importer_.lookup(llvm::StringRef(node.inputs[i]), scope_);
}

llvm::SmallVector<Val> NodeContext::ins() {
  llvm::SmallVector<Val> values;
  for (unsigned i = 0; i < numInputs(); ++i) {
    if (has(i)) values.push_back(in(i));
  }
  return values;
}

FailureOr<llvm::SmallVector<Val>> NodeContext::sequence(unsigned i) {
  const llvm::StringRef name(node.inputs[i]);
  if (const auto* values = importer_.findSequence(name, scope_)) return *values;
  return error("expected input " + llvm::Twine(i) +
               " to be a sequence, found the tensor '" + name + "'");
}

LogicalResult NodeContext::sequenceResult(llvm::ArrayRef<Val> values) {
  if (e.failed()) return failure();
  if (wants(0))
    scope_.sequences[llvm::StringRef(node.outputs[0])].assign(values.begin(),
                                                              values.end());
  return success();
}

bool NodeContext::isConstant(unsigned i) {
  return importer_.findInitializer(llvm::StringRef(node.inputs[i]), scope_,
                                   nullptr) ||
         in(i).constant();
}

FailureOr<mlir::DenseElementsAttr> NodeContext::constant(unsigned i) {
  // An initializer's data is read from the file even if it became an argument.
  if (const TensorProto* tensor = importer_.findInitializer(
          llvm::StringRef(node.inputs[i]), scope_, nullptr)) {
    return decode(*tensor);
  }
  Val value = in(i);
  if (mlir::DenseElementsAttr attr = value.constant()) return attr;
  importer_.noteNeededInputs(value.value);
  return error("input " + llvm::Twine(i) + " ('" +
               llvm::StringRef(node.inputs[i]) +
               "') must be known when the model is imported: shapes are "
               "static, and it depends on the model's inputs");
}

FailureOr<Shape> NodeContext::constInts(unsigned i) {
  auto attr = constant(i);
  if (failed(attr)) return failure();
  auto type = mlir::dyn_cast<mlir::IntegerType>(attr->getElementType());
  if (!type)
    return error("expected input " + llvm::Twine(i) + " to hold integers");
  bool is_unsigned = type.getWidth() == 1 || in(i).is_unsigned;
  Shape values;
  for (const llvm::APInt& value : attr->getValues<llvm::APInt>()) {
    values.push_back(is_unsigned ? static_cast<int64_t>(value.getZExtValue())
                                 : value.getSExtValue());
  }
  return values;
}

FailureOr<llvm::SmallVector<double>> NodeContext::constFloats(unsigned i) {
  auto attr = constant(i);
  if (failed(attr)) return failure();
  llvm::SmallVector<double> values;
  if (!mlir::isa<mlir::FloatType>(attr->getElementType())) {
    auto ints = constInts(i);
    if (failed(ints)) return failure();
    for (int64_t value : *ints) values.push_back(static_cast<double>(value));
    return values;
  }
  for (llvm::APFloat value : attr->getValues<llvm::APFloat>()) {
    bool loses;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &loses);
    values.push_back(value.convertToDouble());
  }
  return values;
}

FailureOr<double> NodeContext::constFloat(unsigned i) {
  auto values = constFloats(i);
  if (failed(values)) return failure();
  if (values->size() != 1)
    return error("expected input " + llvm::Twine(i) + " to be a scalar");
  return (*values)[0];
}

bool NodeContext::hasAttr(llvm::StringRef name) const {
  for (const Attribute& attribute : node.attributes) {
    if (llvm::StringRef(attribute.name) == name) return true;
  }
  return false;
}

const Attribute* NodeContext::find(llvm::StringRef name, int32_t type) {
  for (const Attribute& attribute : node.attributes) {
    if (llvm::StringRef(attribute.name) != name) continue;
    // Files of IR version 1 may omit the type.
    if (attribute.type == type || attribute.type == 0) return &attribute;
    static constexpr const char* kNames[] = {
        "",         "a float", "an integer", "a string",
        "a tensor", "a graph", "floats",     "integers"};
    e.error("expected attribute '" + name + "' to be " + kNames[type] +
            ", found AttributeType " + llvm::Twine(attribute.type));
    return nullptr;
  }
  return nullptr;
}

int64_t NodeContext::attrInt(llvm::StringRef name, int64_t absent) {
  const Attribute* attribute = find(name, kInt);
  return attribute ? attribute->i : absent;
}

double NodeContext::attrFloat(llvm::StringRef name, double absent) {
  const Attribute* attribute = find(name, kFloat);
  return attribute ? attribute->f : absent;
}

std::string NodeContext::attrString(llvm::StringRef name,
                                    llvm::StringRef absent) {
  const Attribute* attribute = find(name, kString);
  return attribute ? std::string(attribute->s) : absent.str();
}

Shape NodeContext::attrInts(llvm::StringRef name, Dims absent) {
  const Attribute* attribute = find(name, kInts);
  return attribute ? Shape(Dims(attribute->ints)) : Shape(absent);
}

llvm::SmallVector<double> NodeContext::attrFloats(llvm::StringRef name) {
  const Attribute* attribute = find(name, kFloats);
  if (!attribute) return {};
  return llvm::SmallVector<double>(attribute->floats.begin(),
                                   attribute->floats.end());
}

const TensorProto* NodeContext::attrTensor(llvm::StringRef name) {
  const Attribute* attribute = find(name, kTensor);
  return attribute ? attribute->t.get() : nullptr;
}

const Graph* NodeContext::attrGraph(llvm::StringRef name) {
  const Attribute* attribute = find(name, kGraph);
  return attribute ? attribute->g.get() : nullptr;
}

FailureOr<int64_t> NodeContext::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return error("expected an axis from " + llvm::Twine(-rank) + " to " +
                 llvm::Twine(rank - 1) + ", found " + llvm::Twine(axis));
  }
  return axis < 0 ? axis + rank : axis;
}

FailureOr<Shape> NodeContext::axes(Dims axes, int64_t rank) {
  Shape result;
  for (int64_t entry : axes) {
    auto dim = axis(entry, rank);
    if (failed(dim)) return failure();
    if (llvm::is_contained(result, *dim))
      return error("expected axes that differ, found " + llvm::Twine(entry) +
                   " twice");
    result.push_back(*dim);
  }
  return result;
}

void NodeContext::out(unsigned i, Val value) {
  if (wants(i)) scope_.values[llvm::StringRef(node.outputs[i])] = value;
}

LogicalResult NodeContext::result(Val value) {
  out(0, value);
  return success();
}

LogicalResult NodeContext::error(const llvm::Twine& message) {
  e.error(op() + ": " + message);
  return failure();
}

LogicalResult NodeContext::unsupported(llvm::StringRef what) {
  std::string name = (op() + "(" + what + ")").str();
  if (e.failed()) return failure();
  importer_.report_.unsupported.push_back(name);
  return error(what + " is not supported");
}

FailureOr<ElementType> NodeContext::elementType(int64_t data_type) {
  auto code = static_cast<DataType>(data_type);
  ElementType type = getElementType(code, e.builder().getContext());
  if (!type.type) return unsupported("type " + toString(code));
  return type;
}

FailureOr<mlir::DenseElementsAttr> NodeContext::decode(
    const TensorProto& tensor) {
  if (failed(elementType(static_cast<int64_t>(tensor.type)))) return failure();
  std::string message;
  auto attr =
      importer_.files_.decode(tensor, e.builder().getContext(), message);
  if (failed(attr))
    return error("a constant at byte " + llvm::Twine(tensor.offset) + ": " +
                 message);
  return attr;
}

FailureOr<Val> NodeContext::materialize(const TensorProto& tensor,
                                        llvm::StringRef name) {
  return importer_.materialize(tensor, name);
}

Val NodeContext::separateInitializer(unsigned i, llvm::StringRef name) {
  const TensorProto* tensor = importer_.findInitializer(
      llvm::StringRef(node.inputs[i]), scope_, nullptr);
  if (!tensor || !in(i) || in(i).constant()) return {};
  auto weight = importer_.addWeight(*tensor, name);
  return failed(weight) ? Val() : *weight;
}

Val NodeContext::chooseRows(Val mask) {
  return importer_.chosen_.choose(e, mask);
}

Val NodeContext::nextSeed() { return importer_.signature_.nextSeed(); }

FailureOr<llvm::SmallVector<Val>> NodeContext::inlineGraph(const Graph& graph) {
  Scope inner;
  inner.parent = &scope_;
  inner.opsets = scope_.opsets;
  inner.bindings = scope_.bindings;
  mlir::Location loc = e.loc();
  if (failed(importer_.declareInitializers(graph, inner)) ||
      failed(importer_.importNodes(graph.nodes, inner))) {
    return failure();
  }
  e.start(loc);
  llvm::SmallVector<Val> results;
  for (auto [i, output] : llvm::enumerate(graph.outputs)) {
    const llvm::StringRef name(output.name);
    results.push_back(importer_.lookup(name, inner));
    if (!results.back())
      return error("a branch's output '" + name + "' has no value");
    if (i < node.outputs.size() && GraphImporter::isCount(name, inner))
      scope_.counts.insert(llvm::StringRef(node.outputs[i]));
  }
  return results;
}

}  // namespace partita::onnx
