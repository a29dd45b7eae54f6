// Walks nodes in order. Handlers build their operations; operators that work in
// place give new values to their tensor and to all views of its memory.
#include "frontends/torch/graph_importer.h"

#include <algorithm>

#include "frontends/torch/handlers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::torch {
namespace {

using Kind = Argument::Kind;

// Maximum nesting of graphs.
constexpr int kMaxDepth = 16;

constexpr llvm::StringLiteral kInlined[] = {
    "higher_order.wrap_with_set_grad_enabled",
    "higher_order.wrap_with_autocast"};

bool isInlined(const Target& target) {
  return llvm::is_contained(kInlined, llvm::StringRef(target.op));
}

const Graph* graphOf(const Node& node) {
  for (const NamedArgument& input : node.inputs)
    if (input.argument.graph) return input.argument.graph.get();
  return nullptr;
}

// "/transformer/h/0/attn/linear_3", and the line of the user's program.
mlir::Location locationOf(const Node& node, mlir::MLIRContext* context) {
  std::string name = "/" + node.module;
  std::replace(name.begin(), name.end(), '.', '/');
  if (name.size() > 1) name += "/";
  mlir::Location loc =
      mlir::NameLoc::get(mlir::StringAttr::get(context, name + node.name));
  if (node.source.file.empty()) return loc;
  return mlir::FusedLoc::get(
      context, {loc, mlir::FileLineColLoc::get(context, node.source.file,
                                               node.source.line, 0)});
}

std::string describe(const Node& node) {
  std::string text = "'" + node.name + "'";
  if (!node.module.empty()) text += " in " + node.module;
  if (!node.source.file.empty())
    text += " at " + node.source.file + ":" + std::to_string(node.source.line);
  return text;
}

using Unsupported = std::map<std::string, llvm::SmallVector<std::string>>;

void collectUnsupported(const Graph& graph, int depth, Unsupported& found) {
  for (const Node& node : graph.nodes) {
    const Target target = parseTarget(node.target);
    if (isInlined(target)) {
      const Graph* inner = graphOf(node);
      if (inner && depth < kMaxDepth)
        collectUnsupported(*inner, depth + 1, found);
    } else if (!findHandler(target)) {
      llvm::StringRef name = node.target;
      name.consume_front("torch.ops.");
      found[name.str()].push_back(describe(node));
    }
  }
}

}  // namespace

GraphImporter::GraphImporter(const Program& program, Weights weights,
                             const Symbols& symbols, mlir::func::FuncOp main)
    : program_(program),
      weights_(std::move(weights)),
      symbols_(symbols),
      main_(main),
      emitter_(mlir::OpBuilder::atBlockEnd(main.addEntryBlock())),
      signature_(main, emitter_) {
  emitter_.start(main.getLoc());
}

LogicalResult GraphImporter::run() {
  Scope scope;
  scope.graph = &program_.graph;
  // First, so that one message lists all unsupported operators.
  if (failed(checkSupported()) || failed(declareInputs(scope)) ||
      failed(importNodes(program_.graph, scope)))
    return failure();
  return finishMain(scope);
}

LogicalResult GraphImporter::checkSupported() {
  Unsupported found;
  collectUnsupported(program_.graph, 0, found);
  if (found.empty()) return success();
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(main_.getLoc());
  diagnostic << "operators that are not supported (torch "
             << program_.torch_version << "):";
  for (auto& [name, nodes] : found) {
    constexpr size_t kListed = 8;
    diagnostic << "\n  " << name << ", " << nodes.size()
               << (nodes.size() == 1 ? " node: " : " nodes: ")
               << llvm::join(llvm::ArrayRef(nodes).take_front(kListed), ", ")
               << (nodes.size() > kListed ? ", ..." : "");
  }
  return diagnostic;
}

LogicalResult GraphImporter::declareInputs(Scope& scope) {
  for (const InputSpec& spec : program_.inputs) {
    if (spec.argument.names.empty()) {
      if (spec.kind == InputSpec::Kind::kUser &&
          llvm::any_of(spec.argument.ints, [](const IntArgument& value) {
            return !value.name.empty();
          }))
        return mlir::emitError(main_.getLoc())
               << "expected inputs that are tensors, found the number '"
               << spec.argument.ints.front().name
               << "'; export the model with it as a constant";
      continue;
    }
    const std::string& name = spec.argument.names.front();
    if (scope.values.count(name) || scope.weights.count(name))
      return mlir::emitError(main_.getLoc())
             << "input '" << name << "' exists twice";
    if (spec.kind != InputSpec::Kind::kUser) {
      scope.weights[name] = &spec;
      if (!llvm::StringRef(spec.target).ends_with("num_batches_tracked"))
        scope.fixed[name] = "'" + spec.target + "'";
    } else if (spec.argument.kind != Kind::kTensor) {
      return mlir::emitError(main_.getLoc())
             << "expected inputs that are tensors, found a list";
    } else if (failed(declareTensor(name, scope))) {
      return failure();
    } else {
      scope.fixed[name] = "input '" + name + "'";
    }
  }
  return success();
}

LogicalResult GraphImporter::declareTensor(const std::string& name,
                                           Scope& scope) {
  const auto meta = program_.graph.tensors.find(name);
  if (meta == program_.graph.tensors.end())
    return mlir::emitError(main_.getLoc())
           << "expected the type of input '" << name
           << "' in tensor_values, found none";
  const ElementType type =
      elementTypeOf(meta->second.dtype, main_.getContext());
  if (!type.type)
    return mlir::emitError(main_.getLoc())
           << "input '" << name << "' is of type "
           << toString(meta->second.dtype) << ": not supported";
  Shape shape;
  for (const SymInt& size : meta->second.sizes) {
    const std::optional<int64_t> value = symbols_.evaluate(size);
    if (!value || *value < 0)
      return mlir::emitError(main_.getLoc())
             << "input '" << name << "': cannot evaluate the size '"
             << size.expression << "'";
    shape.push_back(*value);
  }
  if (!builder::elementCount(shape))
    return mlir::emitError(main_.getLoc())
           << "input '" << name << "' has an impossible shape "
           << builder::toString(shape);
  scope.values[name] = signature_.addInput(
      name, mlir::RankedTensorType::get(shape, type.type), type.is_unsigned);
  return success();
}

LogicalResult GraphImporter::importNodes(const Graph& graph, Scope& scope) {
  if (depth_ >= kMaxDepth)
    return mlir::emitError(emitter_.loc())
           << "graphs nest more than " << kMaxDepth << " deep";
  ++depth_;
  llvm::scope_exit leave([&] { --depth_; });
  for (const Node& node : graph.nodes)
    if (failed(importNode(node, scope))) return failure();
  return success();
}

LogicalResult GraphImporter::importNode(const Node& node, Scope& scope) {
  emitter_.start(locationOf(node, main_.getContext()));
  const Target target = parseTarget(node.target);
  if (isInlined(target)) return inlineGraph(node, scope);
  const Handler* handler = findHandler(target);
  NodeContext context(*this, scope, node, target.op, target.overload);
  for (const std::string& result : context.results())
    if (scope.values.count(result))
      return context.error("its result '" + result + "' exists already"),
             failure();
  if (failed(importWith(*handler, node, scope))) return failure();
  if (!target.in_place) {
    if (!handler->is_view) return success();
    const Argument& self = node.inputs.front().argument;
    if (self.kind == Kind::kTensor)
      for (const std::string& result : context.results())
        addView(result, self.names.front(), node, scope);
    return success();
  }
  if (node.inputs.empty() ||
      node.inputs.front().argument.kind != Kind::kTensor ||
      context.results().size() != 1)
    return context.error("expected a tensor to change"), failure();
  const std::string& self = node.inputs.front().argument.names.front();
  const std::string& result = context.results().front();
  const Val old = lookup(self, scope), changed = scope.values[result];
  if (!old || old.shape() != changed.shape())
    return context.error("expected a result of its tensor's shape"), failure();
  scope.views[result] = {self, nullptr};
  scope.view_order.push_back(result);
  return assign(self, emitter_.cast(changed, old.elementType()), scope);
}

LogicalResult GraphImporter::importWith(const Handler& handler,
                                        const Node& node, Scope& scope) {
  const Target target = parseTarget(node.target);
  NodeContext context(*this, scope, node, target.op, target.overload);
  const Val value = handler.import(context);
  if (emitter_.failed()) return failure();
  if (value) context.out(0, value);
  return checkResults(node, scope);
}

// A difference is a defect of the file, or of a handler.
LogicalResult GraphImporter::checkResults(const Node& node, Scope& scope) {
  const Target target = parseTarget(node.target);
  NodeContext context(*this, scope, node, target.op, target.overload);
  for (const std::string& result : context.results()) {
    const auto value = scope.values.find(result);
    if (value == scope.values.end())
      return context.unsupported("result '" + result + "'"), failure();
    const auto meta = scope.graph->tensors.find(result);
    if (meta == scope.graph->tensors.end()) continue;
    const Val found = value->second;
    const ElementType declared =
        elementTypeOf(meta->second.dtype, main_.getContext());
    bool fits = declared == found.elementType() &&
                meta->second.sizes.size() == static_cast<size_t>(found.rank());
    std::string shape;
    for (auto [i, size] : llvm::enumerate(meta->second.sizes)) {
      const std::optional<int64_t> expected = symbols_.evaluate(size);
      shape += (i ? ", " : "") +
               (expected ? std::to_string(*expected) : size.expression);
      if (fits && expected) fits = *expected == found.dim(i);
    }
    if (!fits)
      return context.error("expected a result of type " +
                           toString(meta->second.dtype) + " [" + shape +
                           "] as the file says, found " +
                           builder::toString(found.elementType()) + " " +
                           builder::toString(found.shape())),
             failure();
  }
  return success();
}

LogicalResult GraphImporter::inlineGraph(const Node& node, Scope& scope) {
  const Target target = parseTarget(node.target);
  NodeContext outer(*this, scope, node, target.op, target.overload);
  const Graph* graph = graphOf(node);
  if (!graph) return outer.error("expected a graph"), failure();
  Scope inner;
  inner.graph = graph;
  size_t next = 0;
  bool is_after = false;
  for (const NamedArgument& input : node.inputs) {
    if (!is_after) {
      is_after = input.argument.graph != nullptr;
      continue;
    }
    if (next >= graph->inputs.size())
      return outer.error("expected as many arguments as its graph has inputs"),
             failure();
    const Argument& place = graph->inputs[next++];
    if (place.kind == Kind::kTensor && input.argument.kind == Kind::kTensor) {
      const Val value = lookup(input.argument.names.front(), scope);
      if (!value) return failure();
      inner.values[place.names.front()] = value;
      inner.fixed[place.names.front()] = "an input of an inner graph";
    } else if (place.kind == Kind::kInt && !place.ints.front().name.empty()) {
      inner.ints[place.ints.front().name] =
          outer.integerAt(static_cast<unsigned>(&input - node.inputs.data()));
      if (emitter_.failed()) return failure();
    }
  }
  const mlir::Location loc = emitter_.loc();
  if (failed(importNodes(*graph, inner))) return failure();
  emitter_.start(loc);
  size_t index = 0;
  for (const Argument& output : graph->outputs) {
    for (const std::string& name : output.names) {
      const Val value = lookup(name, inner);
      if (!value) return failure();
      outer.out(static_cast<unsigned>(index++), value);
    }
  }
  if (index < outer.results().size())
    return outer.error("expected as many results as its graph has"), failure();
  return success();
}

void GraphImporter::addView(const std::string& name, const std::string& base,
                            const Node& node, Scope& scope) {
  scope.views[name] = {base, &node};
  scope.view_order.push_back(name);
}

LogicalResult GraphImporter::assign(const std::string& name, Val value,
                                    Scope& scope) {
  // Writes the value through its views to the tensor that owns the memory.
  llvm::StringMap<bool> current;
  std::string owner = name;
  scope.values[owner] = value;
  current[owner] = true;
  for (auto view = scope.views.find(owner); view != scope.views.end();
       view = scope.views.find(owner)) {
    const std::string base = view->second.base;
    if (const Node* node = view->second.node) {
      const Target target = parseTarget(node->target);
      const Handler* handler = findHandler(target);
      NodeContext context(*this, scope, *node, target.op, target.overload);
      const Val old = lookup(base, scope);
      if (!old) return failure();
      if (!handler->write)
        return context.unsupported("a change in place of its result"),
               failure();
      value = handler->write(context, old, value);
      if (emitter_.failed()) return failure();
    }
    owner = base;
    scope.values[owner] = value;
    current[owner] = true;
  }
  if (auto fixed = scope.fixed.find(owner); fixed != scope.fixed.end()) {
    emitter_.error("a change of " + fixed->second +
                   " in place is not supported: inputs and weights keep their "
                   "values within a step");
    return failure();
  }
  // Other views show the new value, too.
  const mlir::Location loc = emitter_.loc();
  for (size_t i = 0; i < scope.view_order.size(); ++i) {
    const std::string other = scope.view_order[i];
    const Scope::View view = scope.views[other];
    if (current.count(other) || !current.count(view.base)) continue;
    current[other] = true;
    if (!view.node) {
      scope.values[other] = scope.values[view.base];
      continue;
    }
    emitter_.start(loc);
    const Target target = parseTarget(view.node->target);
    if (failed(importWith(*findHandler(target), *view.node, scope)))
      return failure();
  }
  return success();
}

Val GraphImporter::lookup(const std::string& name, Scope& scope) {
  if (auto found = scope.values.find(name); found != scope.values.end())
    return found->second;
  auto weight = scope.weights.find(name);
  if (weight == scope.weights.end()) {
    emitter_.error("tensor '" + name +
                   "' is not the result of an earlier node or an input: the "
                   "file is inconsistent");
    return {};
  }
  const Val value = materialize(*weight->second, name);
  if (value) scope.values[name] = value;
  return value;
}

}  // namespace partita::torch
