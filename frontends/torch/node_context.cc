// Access to a node's arguments and results.
#include "frontends/torch/node_context.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::torch {
namespace {

using Kind = Argument::Kind;

// Types are ordered as PyTorch promotes them: bool, integers, floats.
int categoryOf(mlir::Type type) {
  if (mlir::isa<mlir::FloatType>(type)) return 2;
  return type.isInteger(1) ? 0 : 1;
}

ElementType widerOf(ElementType a, ElementType b, mlir::Builder& builder) {
  const int category_a = categoryOf(a.type), category_b = categoryOf(b.type);
  if (category_a != category_b) return category_a > category_b ? a : b;
  const unsigned width_a = a.type.getIntOrFloatBitWidth(),
                 width_b = b.type.getIntOrFloatBitWidth();
  if (width_a != width_b) return width_a > width_b ? a : b;
  // The widths are equal: f16 and bf16, or integers with and without a sign.
  if (a == b) return a;
  if (category_a == 2) return {builder.getF32Type()};
  return width_a == 8 ? ElementType{builder.getIntegerType(16)} : a;
}

}  // namespace

NodeContext::NodeContext(GraphImporter& importer, Scope& scope,
                         const Node& node, llvm::StringRef op,
                         llvm::StringRef overload)
    : e(importer.emitter_),
      node(node),
      op(op),
      overload(overload),
      importer_(importer),
      scope_(scope) {
  for (const Argument& output : node.outputs)
    if (output.kind == Kind::kTensor || output.kind == Kind::kTensors)
      llvm::append_range(results_, output.names);
}

Val NodeContext::error(const llvm::Twine& message) {
  e.error(op + ": " + message);
  return {};
}

Val NodeContext::unsupported(const llvm::Twine& what) {
  return error(what + " is not supported");
}

const Argument* NodeContext::find(llvm::StringRef name) const {
  for (const NamedArgument& input : node.inputs)
    if (llvm::StringRef(input.name) == name)
      return input.argument.kind == Kind::kNone ? nullptr : &input.argument;
  return nullptr;
}

const Argument* NodeContext::require(llvm::StringRef name) {
  const Argument* argument = find(name);
  if (!argument) error("expected an argument '" + name + "', found none");
  return argument;
}

bool NodeContext::isTensor(llvm::StringRef name) const {
  const Argument* argument = find(name);
  return argument && argument->kind == Kind::kTensor;
}

Val NodeContext::tensor(llvm::StringRef name) {
  const Argument* argument = require(name);
  if (argument && argument->kind != Kind::kTensor)
    error("expected argument '" + name + "' to be a tensor");
  if (!failed())
    if (Val value = importer_.lookup(argument->names.front(), scope_))
      return value;
  return e.splat(0, e.f32());
}

Val NodeContext::optionalTensor(llvm::StringRef name) {
  return has(name) ? tensor(name) : Val();
}

llvm::SmallVector<Val> NodeContext::tensors(llvm::StringRef name) {
  llvm::SmallVector<Val> values;
  const Argument* argument = require(name);
  if (!argument) return values;
  if (argument->kind != Kind::kTensors) {
    error("expected argument '" + name + "' to be a list of tensors");
    return values;
  }
  for (const std::string& item : argument->names)
    values.push_back(item.empty() ? Val() : importer_.lookup(item, scope_));
  return values;
}

Val NodeContext::operand(llvm::StringRef name, ElementType type) {
  const Argument* argument = require(name);
  if (!argument) return e.splat(0, type);
  if (argument->kind == Kind::kTensor) return e.cast(tensor(name), type);
  if (argument->kind == Kind::kFloat && !argument->floats.empty())
    return e.splat(argument->floats.front(), type);
  const int64_t value = integer(name);
  if (mlir::isa<mlir::FloatType>(type.type))
    return e.splat(static_cast<double>(value), type);
  // 64-bit integers exceed doubles.
  return e.cast(e.ints({value}, {}), type);
}

std::pair<Val, Val> NodeContext::promoted(llvm::StringRef a,
                                          llvm::StringRef b) {
  mlir::Builder& builder = e.builder();
  const auto type_of = [&](llvm::StringRef name) -> ElementType {
    const Argument* argument = find(name);
    if (!argument) return {};
    if (argument->kind == Kind::kTensor) return tensor(name).elementType();
    if (argument->kind == Kind::kFloat) return {builder.getF32Type()};
    if (argument->kind == Kind::kBool) return {builder.getI1Type()};
    return {builder.getI64Type()};
  };
  // 0: a tensor with dimensions; 1: a scalar tensor; 2: a number. A lower rank
  // decides among types of one category.
  const auto rank_of = [&](llvm::StringRef name) {
    if (!isTensor(name)) return 2;
    return tensor(name).rank() > 0 ? 0 : 1;
  };
  const ElementType type_a = type_of(a), type_b = type_of(b);
  if (!type_a.type || !type_b.type) {
    error("expected arguments '" + a + "' and '" + b + "'");
    return {e.splat(0, e.f32()), e.splat(0, e.f32())};
  }
  const int category_a = categoryOf(type_a.type),
            category_b = categoryOf(type_b.type);
  ElementType common;
  if (category_a != category_b || rank_of(a) == rank_of(b))
    common = widerOf(type_a, type_b, builder);
  else
    common = rank_of(a) < rank_of(b) ? type_a : type_b;
  return {operand(a, common), operand(b, common)};
}

std::optional<int64_t> NodeContext::valueOf(const IntArgument& argument) {
  if (argument.name.empty()) return argument.value;
  if (auto known = scope_.ints.find(argument.name); known != scope_.ints.end())
    return known->second;
  const auto symbolic = scope_.graph->sym_ints.find(argument.name);
  std::optional<int64_t> value;
  if (symbolic != scope_.graph->sym_ints.end())
    value = importer_.symbols_.evaluate(symbolic->second);
  if (!value)
    error("the number '" + argument.name +
          "' is not known when the model is imported: shapes are static");
  return value;
}

int64_t NodeContext::integer(llvm::StringRef name,
                             std::optional<int64_t> absent) {
  if (!has(name) && absent) return *absent;
  const Argument* argument = require(name);
  if (!argument) return 0;
  if ((argument->kind == Kind::kInt || argument->kind == Kind::kBool) &&
      argument->ints.size() == 1)
    return valueOf(argument->ints.front()).value_or(0);
  error("expected argument '" + name + "' to be an integer");
  return 0;
}

int64_t NodeContext::integerAt(unsigned i) {
  if (i < node.inputs.size()) {
    const Argument& argument = node.inputs[i].argument;
    if ((argument.kind == Kind::kInt || argument.kind == Kind::kBool) &&
        argument.ints.size() == 1)
      return valueOf(argument.ints.front()).value_or(0);
  }
  error("expected argument " + llvm::Twine(i) + " to be an integer");
  return 0;
}

Shape NodeContext::ints(llvm::StringRef name, std::optional<Shape> absent) {
  if (!has(name) && absent) return *absent;
  Shape values;
  const Argument* argument = require(name);
  if (!argument) return values;
  // An empty list has no type.
  const bool is_empty =
      argument->kind == Kind::kTensors && argument->names.empty();
  if (argument->kind != Kind::kInts && argument->kind != Kind::kInt &&
      !is_empty) {
    error("expected argument '" + name + "' to be a list of integers");
    return values;
  }
  for (const IntArgument& item : argument->ints)
    values.push_back(valueOf(item).value_or(0));
  return values;
}

double NodeContext::number(llvm::StringRef name, std::optional<double> absent) {
  if (!has(name) && absent) return *absent;
  const Argument* argument = require(name);
  if (!argument) return 0;
  if (argument->kind == Kind::kFloat && argument->floats.size() == 1)
    return argument->floats.front();
  if (argument->kind == Kind::kTensor) {
    error("expected argument '" + name + "' to be a number, found a tensor");
    return 0;
  }
  return static_cast<double>(integer(name));
}

bool NodeContext::flag(llvm::StringRef name, bool absent) {
  return integer(name, absent ? 1 : 0) != 0;
}

std::string NodeContext::text(llvm::StringRef name, llvm::StringRef absent) {
  const Argument* argument = find(name);
  if (!argument) return absent.str();
  if (argument->kind == Kind::kString) return argument->text;
  error("expected argument '" + name + "' to be a string");
  return absent.str();
}

int64_t NodeContext::wrapAxis(int64_t axis, int64_t rank) {
  if (rank == 0) {
    error("expected a tensor with dimensions, found a scalar");
    return 0;
  }
  if (axis < -rank || axis >= rank) {
    error("expected a dimension from " + llvm::Twine(-rank) + " to " +
          llvm::Twine(rank - 1) + ", found " + llvm::Twine(axis));
    return 0;
  }
  return axis < 0 ? axis + rank : axis;
}

int64_t NodeContext::axis(llvm::StringRef name, int64_t rank,
                          std::optional<int64_t> absent) {
  return wrapAxis(integer(name, absent), rank);
}

Shape NodeContext::axes(llvm::StringRef name, int64_t rank) {
  Shape result;
  for (int64_t entry : ints(name, Shape())) {
    const int64_t dim = wrapAxis(entry, rank);
    if (llvm::is_contained(result, dim))
      error("expected dimensions that differ, found " + llvm::Twine(entry) +
            " twice");
    result.push_back(dim);
  }
  return result.empty() ? countUp(rank) : result;
}

ElementType NodeContext::resultType(unsigned i) {
  if (wants(i)) {
    const auto meta = scope_.graph->tensors.find(results_[i]);
    if (meta != scope_.graph->tensors.end()) {
      const ElementType type =
          elementTypeOf(meta->second.dtype, e.builder().getContext());
      if (type.type) return type;
      unsupported("type " + toString(meta->second.dtype));
      return {e.f32()};
    }
  }
  error("expected the type of result " + llvm::Twine(i) +
        " in tensor_values, found none");
  return {e.f32()};
}

ElementType NodeContext::dtype(ElementType absent, llvm::StringRef name) {
  const Argument* argument = find(name);
  if (!argument) return absent;
  if (argument->kind != Kind::kScalarType || argument->ints.size() != 1) {
    error("expected argument '" + name + "' to be a type");
    return absent;
  }
  const auto code = static_cast<ScalarType>(argument->ints.front().value);
  const ElementType type = elementTypeOf(code, e.builder().getContext());
  if (type.type) return type;
  unsupported("type " + toString(code));
  return absent;
}

void NodeContext::out(unsigned i, Val value) {
  if (wants(i)) scope_.values[results_[i]] = value;
}

void NodeContext::outInt(int64_t value) {
  for (const Argument& output : node.outputs)
    if (!output.ints.empty()) scope_.ints[output.ints.front().name] = value;
}

}  // namespace partita::torch
