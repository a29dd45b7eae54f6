// Access to an operation's operands, attributes and results.
#include "frontends/stablehlo/op_context.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::stablehlo {

llvm::StringRef shortName(mlir::Operation& op) {
  llvm::StringRef name = op.getName().getStringRef();
  if (!name.consume_front("vhlo.")) return name;
  const auto [base, version] = name.rsplit("_v");
  return !version.empty() && llvm::all_of(version, llvm::isDigit) ? base : name;
}

ValueType valueType(mlir::Type type) {
  ValueType result;
  const auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor) return result;
  result.is_static = tensor.hasStaticShape() && !tensor.getEncoding() &&
                     builder::elementCount(tensor.getShape());
  result.shape = Shape(tensor.getShape());
  const mlir::Type element = tensor.getElementType();
  if (auto integer = mlir::dyn_cast<mlir::IntegerType>(element)) {
    if (!llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth()))
      return result;
    result.element.type =
        mlir::IntegerType::get(type.getContext(), integer.getWidth());
    result.element.is_unsigned = integer.isUnsigned();
  } else if (element.isF16() || element.isBF16() || element.isF32() ||
             element.isF64()) {
    result.element.type = element;
  }
  return result;
}

// Only what nests at most once: types of a file may nest without end.
std::string typeName(mlir::Type type) {
  const auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor) return "no tensor";
  const mlir::Type element = tensor.getElementType();
  if (!element.isIntOrIndexOrFloat() && !mlir::isa<mlir::ComplexType>(element))
    return "a tensor of another kind";
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::RankedTensorType::get(tensor.getShape(), element).print(stream);
  return text;
}

OpContext::OpContext(GraphImporter& importer, mlir::Operation& op,
                     llvm::StringRef name)
    : e(importer.emitter_), op(op), name(name), importer_(importer) {}

Val OpContext::error(const llvm::Twine& message) {
  e.error(name + ": " + message);
  return {};
}

Val OpContext::unsupported(const llvm::Twine& what) {
  return error(what + " is not supported");
}

Val OpContext::in(unsigned i) {
  if (i >= op.getNumOperands()) {
    error("expected an operand " + llvm::Twine(i) + ", found " +
          llvm::Twine(op.getNumOperands()) + " operands");
    return e.splat(0, e.f32());
  }
  const auto found = importer_.values_.find(op.getOperand(i));
  if (found != importer_.values_.end()) return found->second;
  error("operand " + llvm::Twine(i) +
        " is not a tensor, or not the result of an earlier operation");
  return e.splat(0, e.f32());
}

Values OpContext::all() {
  Values values;
  for (unsigned i = 0; i < op.getNumOperands(); ++i) values.push_back(in(i));
  return values;
}

void OpContext::out(unsigned i, Val value) {
  if (failed()) return;
  if (i >= op.getNumResults()) {
    error("expected a result " + llvm::Twine(i) + ", found " +
          llvm::Twine(op.getNumResults()) + " results");
    return;
  }
  importer_.values_[op.getResult(i)] = value;
}

void OpContext::outAll(const Values& values) {
  if (failed()) return;
  if (values.size() != op.getNumResults()) {
    error("expected " + llvm::Twine(values.size()) + " results, found " +
          llvm::Twine(op.getNumResults()));
    return;
  }
  for (auto [i, value] : llvm::enumerate(values))
    out(static_cast<unsigned>(i), value);
}

ValueType OpContext::result(unsigned i) {
  ValueType type;
  if (i < op.getNumResults()) type = valueType(op.getResult(i).getType());
  if (type.is_static && !type.element.type) {
    unsupported("a result of " + typeName(op.getResult(i).getType()));
    return {{}, {e.f32()}, true};
  }
  if (!type.is_static) {
    error("expected a result of static shape");
    return {{}, {e.f32()}, true};
  }
  return type;
}

int64_t OpContext::integer(llvm::StringRef attribute) {
  if (auto value = op.getAttrOfType<mlir::IntegerAttr>(attribute);
      value && value.getValue().getSignificantBits() <= 64)
    return value.getValue().getSExtValue();
  error("expected an integer '" + attribute + "'");
  return 0;
}

Shape OpContext::ints(llvm::StringRef attribute) {
  const mlir::Attribute value = op.getAttr(attribute);
  if (!value) return {};
  Shape result;
  if (auto array = mlir::dyn_cast<mlir::DenseI64ArrayAttr>(value))
    return Shape(array.asArrayRef());
  if (auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(value);
      dense && dense.getElementType().isInteger() &&
      dense.getElementType().getIntOrFloatBitWidth() <= 64 &&
      dense.getNumElements() <= 4096) {
    for (const llvm::APInt& number : dense.getValues<llvm::APInt>())
      result.push_back(dense.getElementType().isInteger(1)
                           ? static_cast<int64_t>(number.getZExtValue())
                           : number.getSExtValue());
    return result;
  }
  error("expected integers '" + attribute + "'");
  return {};
}

bool OpContext::flag(llvm::StringRef attribute) {
  const auto value = op.getAttrOfType<mlir::BoolAttr>(attribute);
  return value && value.getValue();
}

std::string OpContext::text(llvm::StringRef attribute) {
  if (auto value = op.getAttrOfType<mlir::StringAttr>(attribute))
    return value.str();
  error("expected a string '" + attribute + "'");
  return {};
}

Shape OpContext::dimensions(llvm::StringRef attribute, int64_t rank) {
  const Shape dims = ints(attribute);
  llvm::SmallVector<bool> seen(rank, false);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || seen[dim]) {
      error("expected '" + attribute + "' to be different dimensions of " +
            llvm::Twine(rank) + ", found " + toString(dims));
      return {};
    }
    seen[dim] = true;
  }
  return dims;
}

int64_t OpContext::dimension(llvm::StringRef attribute, int64_t rank) {
  const int64_t dim = integer(attribute);
  if (dim >= 0 && dim < rank) return dim;
  error("expected '" + attribute + "' to be a dimension of " +
        llvm::Twine(rank) + ", found " + llvm::Twine(dim));
  return 0;
}

Values OpContext::region(unsigned i, llvm::ArrayRef<Val> arguments) {
  if (i >= op.getNumRegions()) {
    error("expected a region " + llvm::Twine(i));
    return {};
  }
  auto values = importer_.importRegion(op.getRegion(i), arguments);
  return llvm::succeeded(values) ? *values : Values();
}

Values OpContext::call(llvm::StringRef function,
                       llvm::ArrayRef<Val> arguments) {
  auto values = importer_.call(function, arguments);
  return llvm::succeeded(values) ? *values : Values();
}

Values OpContext::branch(unsigned i, Val taken) {
  const Val outer = importer_.taken_;
  importer_.taken_ = outer ? e.bitAnd(outer, taken) : taken;
  Values values = region(i, {});
  importer_.taken_ = outer;
  return values;
}

Values OpContext::loop(Val goes_on, llvm::ArrayRef<Val> first) {
  if (op.getNumRegions() != 2) {
    error("expected regions 0 and 1");
    return {};
  }
  auto values =
      importer_.loop(op.getRegion(0), op.getRegion(1), goes_on, first);
  return llvm::succeeded(values) ? *values : Values();
}

Values OpContext::manualComputation() {
  auto values = importer_.importManualComputation(*this);
  return llvm::succeeded(values) ? *values : Values();
}

Val OpContext::constrain(Val value, llvm::StringRef attribute) {
  auto constrained = importer_.constrain(value, op.getAttr(attribute));
  if (llvm::succeeded(constrained)) return *constrained;
  // The cause was reported.
  return error("cannot divide its operand");
}

namespace {

// JAX constrains values of reducers, too, where a computation is manual along a
// part of the mesh. Casts are between vhlo's and sdy's types.
bool isConstraint(mlir::Operation* op) {
  return op && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         (shortName(*op) == "sdy.sharding_constraint" ||
          shortName(*op) == "builtin.unrealized_conversion_cast");
}

mlir::Value unconstrained(mlir::Value value) {
  while (isConstraint(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

}  // namespace

llvm::StringRef OpContext::onlyOperation(unsigned region) {
  if (region >= op.getNumRegions() || !op.getRegion(region).hasOneBlock())
    return {};
  mlir::Block& block = op.getRegion(region).front();
  if (block.getNumArguments() != 2 || block.empty()) return {};
  mlir::Operation& last = block.back();
  if (shortName(last) != "return" || last.getNumOperands() != 1) return {};
  mlir::Operation* only = nullptr;
  for (mlir::Operation& inner : block) {
    if (&inner == &last || isConstraint(&inner)) continue;
    if (only) return {};
    only = &inner;
  }
  const mlir::Value result = unconstrained(last.getOperand(0));
  if (!only) return result == block.getArgument(1) ? "second" : "";
  if (only->getNumResults() != 1 || result != only->getResult(0) ||
      only->getNumOperands() != 2)
    return {};
  const mlir::Value a = unconstrained(only->getOperand(0)),
                    b = unconstrained(only->getOperand(1));
  if ((a != block.getArgument(0) || b != block.getArgument(1)) &&
      (b != block.getArgument(0) || a != block.getArgument(1)))
    return {};
  return shortName(*only);
}

}  // namespace partita::stablehlo
