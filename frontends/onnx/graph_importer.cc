// Walks nodes in order. Handlers build their operations; functions and constant
// branches are inlined.
#include "frontends/onnx/graph_importer.h"

#include "frontends/onnx/handlers.h"
#include "frontends/onnx/marks.h"
#include "frontends/onnx/weight_names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::onnx {
namespace {

// Maximum nesting of functions and branches. A recursive function ends here.
constexpr int kMaxDepth = 64;

llvm::StringRef canonicalDomain(std::string_view domain) {
  return domain == "ai.onnx" ? llvm::StringRef() : llvm::StringRef(domain);
}

// E.g. "Add" or "com.microsoft::BiasGelu".
std::string qualifiedName(const Node& node) {
  std::string name(node.op_type);
  llvm::StringRef domain = canonicalDomain(node.domain);
  return domain.empty() ? name : (domain + "::" + name).str();
}

std::string displayName(const Node& node) {
  if (!node.name.empty()) return std::string(node.name);
  std::string name(node.op_type);
  if (!node.outputs.empty()) name += " -> " + std::string(node.outputs[0]);
  return name;
}

}  // namespace

mlir::Location GraphImporter::locationOf(const Node& node) {
  mlir::MLIRContext* context = main_.getContext();
  mlir::Location name =
      mlir::NameLoc::get(mlir::StringAttr::get(context, displayName(node)));
  std::string_view scope = moduleScope(node);
  if (scope.empty()) return name;
  mlir::Location scope_name = mlir::NameLoc::get(
      mlir::StringAttr::get(context, llvm::StringRef(scope)));
  return mlir::FusedLoc::get(context, {name, scope_name});
}

LogicalResult GraphImporter::unsupported(mlir::Location loc,
                                         llvm::StringRef name,
                                         const llvm::Twine& message) {
  report_.unsupported.push_back(name.str());
  return mlir::emitError(loc) << message;
}

LogicalResult GraphImporter::declareOpsets(llvm::ArrayRef<OperatorSet> opsets,
                                           Scope& scope) {
  for (const OperatorSet& opset : opsets) {
    llvm::StringRef domain = canonicalDomain(opset.domain);
    scope.opsets[domain.str()] = opset.version;
    if (domain.empty() &&
        (opset.version < kOldestOpset || opset.version > kNewestOpset)) {
      std::string name = "opset " + std::to_string(opset.version);
      return unsupported(main_.getLoc(), name,
                         name + " is not supported: expected " +
                             llvm::Twine(kOldestOpset) + " to " +
                             llvm::Twine(kNewestOpset) +
                             "; export again with another opset_version");
    }
  }
  return success();
}

const Function* GraphImporter::findFunction(const Node& node) const {
  for (const Function& function : model_.functions) {
    if (function.name == node.op_type &&
        canonicalDomain(function.domain) == canonicalDomain(node.domain) &&
        function.overload == node.overload) {
      return &function;
    }
  }
  return nullptr;
}

void GraphImporter::collectUnsupported(
    llvm::ArrayRef<Node> nodes, const Scope& scope, int depth,
    std::map<std::string, llvm::SmallVector<std::string>>& found) {
  for (const Node& node : nodes) {
    if (const Function* function = findFunction(node)) {
      Scope inner;
      for (const OperatorSet& opset : function->opsets) {
        inner.opsets[canonicalDomain(opset.domain).str()] = opset.version;
      }
      if (depth < kMaxDepth)
        collectUnsupported(function->nodes, inner, depth + 1, found);
      continue;
    }
    llvm::StringRef domain = canonicalDomain(node.domain);
    auto opset = scope.opsets.find(domain);
    int64_t version = opset == scope.opsets.end() ? 0 : opset->second;
    if (findHandler(llvm::StringRef(node.op_type), domain, version)) continue;
    std::string where = "'" + displayName(node) + "'";
    if (std::string_view scope_name = moduleScope(node); !scope_name.empty())
      where += " in " + std::string(scope_name);
    found[qualifiedName(node)].push_back(where);
  }
}

LogicalResult GraphImporter::checkSupported(llvm::ArrayRef<Node> nodes,
                                            const Scope& scope) {
  std::map<std::string, llvm::SmallVector<std::string>> found;
  collectUnsupported(nodes, scope, depth_, found);
  if (found.empty()) return success();
  auto opset = scope.opsets.find("");
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(main_.getLoc());
  diagnostic << "operators that are not supported" << " (opset "
             << (opset == scope.opsets.end() ? 0 : opset->second) << "):";
  for (auto& [name, nodes] : found) {
    constexpr size_t kListed = 8;
    report_.unsupported.push_back(name);
    diagnostic << "\n  " << name << ", " << nodes.size()
               << (nodes.size() == 1 ? " node: " : " nodes: ")
               << llvm::join(llvm::ArrayRef(nodes).take_front(kListed), ", ")
               << (nodes.size() > kListed ? ", ..." : "");
  }
  return diagnostic;
}

LogicalResult GraphImporter::importNodes(llvm::ArrayRef<Node> nodes,
                                         Scope& scope) {
  if (depth_ >= kMaxDepth) {
    return mlir::emitError(emitter_.loc())
           << "functions or branches nest more than " << kMaxDepth
           << " deep: does a function call itself?";
  }
  ++depth_;
  llvm::scope_exit leave([&] { --depth_; });
  if (failed(checkSupported(nodes, scope))) return failure();
  for (const Node& node : nodes) {
    for (std::string_view output : node.outputs) {
      if (!output.empty()) scope.later[llvm::StringRef(output)] = &node;
    }
  }
  for (const Node& node : nodes) {
    if (failed(importNode(node, scope))) return failure();
  }
  return success();
}

Node GraphImporter::bindAttributes(const Node& node, const Scope& scope) {
  Node bound = node;
  bound.attributes.clear();
  for (const Attribute& attribute : node.attributes) {
    if (attribute.ref.empty()) {
      bound.attributes.push_back(attribute);
      continue;
    }
    auto binding = scope.bindings.find(attribute.ref);
    if (binding == scope.bindings.end()) continue;
    bound.attributes.push_back(binding->second);
    bound.attributes.back().name = attribute.name;
  }
  return bound;
}

LogicalResult GraphImporter::importNode(const Node& original, Scope& scope) {
  bool has_references = llvm::any_of(
      original.attributes, [](const Attribute& a) { return !a.ref.empty(); });
  const Node& node =
      has_references ? bindAttributes(original, scope) : original;
  emitter_.start(locationOf(node));
  for (std::string_view input : node.inputs) {
    llvm::StringRef name(input);
    if (name.empty() || findSequence(name, scope) || lookup(name, scope))
      continue;
    if (emitter_.failed()) return failure();
    auto later = scope.later.find(name);
    if (later == scope.later.end()) {
      return mlir::emitError(emitter_.loc())
             << "input '" << name
             << "' is not the output of any node, an input or an "
             << "initializer: the file is inconsistent";
    }
    return mlir::emitError(emitter_.loc())
           << "input '" << name << "' comes from the later node '"
           << displayName(*later->second)
           << "': the graph has a cycle or its nodes are not sorted";
  }
  for (std::string_view output : node.outputs) {
    if (!output.empty() && (scope.values.count(llvm::StringRef(output)) ||
                            scope.sequences.count(llvm::StringRef(output)))) {
      return mlir::emitError(emitter_.loc())
             << "output '" << llvm::StringRef(output) << "' exists already";
    }
    scope.later.erase(llvm::StringRef(output));
  }
  if (!annotations_ || !node.device_configurations) {
    if (failed(importWith(node, scope))) return failure();
  } else {
    Node used = node;
    if (failed(annotateInputs(used, scope)) ||
        failed(importWith(used, scope)) || failed(annotateOutputs(node, scope)))
      return failure();
  }
  if (marks()) markOutputs(node, scope);
  return success();
}

void GraphImporter::markOutputs(const Node& node, Scope& scope) {
  for (std::string_view output : node.outputs)
    if (scope.values.count(llvm::StringRef(output)))
      mark(scope.values[llvm::StringRef(output)].value,
           llvm::StringRef(output));
}

LogicalResult GraphImporter::annotateInputs(Node& node, Scope& scope) {
  for (std::string_view& input : node.inputs) {
    Val value = input.empty() ? Val() : lookup(llvm::StringRef(input), scope);
    if (!value) continue;
    auto wanted = annotations_->apply(node, input, value, emitter_);
    if (failed(wanted)) return failure();
    if (wanted->value == value.value) continue;
    if (marks() && !node.outputs.empty())
      mark(wanted->value, llvm::StringRef(input),
           llvm::StringRef(node.outputs[0]));
    use_names_.push_back(std::string(input) + " (resharded " +
                         std::to_string(use_names_.size()) + ")");
    if (isCount(llvm::StringRef(input), scope))
      scope.counts.insert(use_names_.back());
    input = use_names_.back();
    scope.values[llvm::StringRef(input)] = *wanted;
  }
  return success();
}

LogicalResult GraphImporter::annotateOutputs(const Node& node, Scope& scope) {
  for (std::string_view output : node.outputs) {
    if (!scope.values.count(llvm::StringRef(output))) continue;
    Val& value = scope.values[llvm::StringRef(output)];
    auto wanted = annotations_->apply(node, output, value, emitter_);
    if (failed(wanted)) return failure();
    value = *wanted;
  }
  return success();
}

LogicalResult GraphImporter::importWith(const Node& node, Scope& scope) {
  if (const Function* function = findFunction(node))
    return inlineFunction(*function, node, scope);

  int64_t opset = scope.opsets[canonicalDomain(node.domain).str()];
  const Handler* handler = findHandler(llvm::StringRef(node.op_type),
                                       canonicalDomain(node.domain), opset);
  NodeContext context(*this, scope, node, opset);
  for (unsigned i = 0; i < handler->min_inputs; ++i) {
    if (!context.has(i))
      return context.error("expected at least " +
                           llvm::Twine(handler->min_inputs) + " inputs");
  }
  for (std::string_view input : node.inputs)
    if (!handler->takes_sequences && !input.empty() &&
        findSequence(llvm::StringRef(input), scope))
      return context.error("expected tensors, found the sequence '" +
                           llvm::StringRef(input) + "'");
  if (failed(checkCounts(node, scope)) || failed(handler->import(context)) ||
      emitter_.failed())
    return failure();
  for (std::string_view output : node.outputs) {
    if (!output.empty() && !scope.values.count(llvm::StringRef(output)) &&
        !scope.sequences.count(llvm::StringRef(output))) {
      return context.unsupported(
          ("output " + llvm::Twine(&output - node.outputs.data())).str());
    }
  }
  return success();
}

LogicalResult GraphImporter::checkCounts(const Node& node, Scope& scope) {
  if (chosen_.empty()) return success();
  const llvm::StringRef op(node.op_type);
  const auto isChosen = [&](size_t i) {
    const Val value = lookup(llvm::StringRef(node.inputs[i]), scope);
    return value && chosen_.isChosen(value.value);
  };
  bool counts = (op == "Shape" || op == "Size") && isChosen(0);
  for (auto [i, input] : llvm::enumerate(node.inputs)) {
    if (input.empty() || !isCount(llvm::StringRef(input), scope)) continue;
    if (i == 1 && (op == "Reshape" || op == "Expand") && isChosen(0)) continue;
    if (!llvm::is_contained(
            {"Cast", "Concat", "Equal", "Gather", "Identity", "Mul", "Reshape",
             "Slice", "Squeeze", "Unsqueeze", "Where"},
            op))
      return unsupported(
          emitter_.loc(), "NonZero",
          op + ": input " + llvm::Twine(i) + " ('" + llvm::StringRef(input) +
              "') is computed from the number of rows that a NonZero chooses: "
              "expected only shapes of these rows");
    counts = true;
  }
  if (counts)
    for (std::string_view output : node.outputs)
      scope.counts.insert(llvm::StringRef(output));
  return success();
}

bool GraphImporter::isCount(llvm::StringRef name, const Scope& scope) {
  for (const Scope* current = &scope; current; current = current->parent) {
    if (current->counts.contains(name)) return true;
    if (current->values.count(name) || current->initializers.count(name))
      return false;
  }
  return false;
}

LogicalResult GraphImporter::inlineFunction(const Function& function,
                                            const Node& node, Scope& scope) {
  Scope inner;
  if (failed(declareOpsets(function.opsets, inner))) return failure();
  for (const Attribute& attribute : function.default_attributes) {
    inner.bindings[std::string(attribute.name)] = attribute;
  }
  for (const Attribute& attribute : node.attributes)
    inner.bindings[std::string(attribute.name)] = attribute;
  for (auto [i, name] : llvm::enumerate(function.inputs)) {
    if (i >= node.inputs.size() || node.inputs[i].empty()) continue;
    const llvm::StringRef given(node.inputs[i]);
    if (const llvm::SmallVector<Val>* sequence = findSequence(given, scope))
      inner.sequences[llvm::StringRef(name)] = *sequence;
    else
      inner.values[llvm::StringRef(name)] = lookup(given, scope);
    if (isCount(given, scope)) inner.counts.insert(llvm::StringRef(name));
  }
  mlir::Location loc = emitter_.loc();
  // An optional input that is absent at the call is absent in the body.
  llvm::SmallVector<Node> nodes(function.nodes.begin(), function.nodes.end());
  for (Node& inner_node : nodes) {
    for (std::string_view& input : inner_node.inputs) {
      bool is_parameter = llvm::is_contained(function.inputs, input);
      if (is_parameter && !inner.values.count(llvm::StringRef(input)) &&
          !inner.sequences.count(llvm::StringRef(input)))
        input = {};
    }
  }
  if (failed(importNodes(nodes, inner))) return failure();
  emitter_.start(loc);
  for (auto [i, name] : llvm::enumerate(function.outputs)) {
    if (i >= node.outputs.size() || node.outputs[i].empty()) continue;
    if (const llvm::SmallVector<Val>* sequence =
            findSequence(llvm::StringRef(name), inner)) {
      scope.sequences[llvm::StringRef(node.outputs[i])] = *sequence;
      continue;
    }
    Val value = lookup(llvm::StringRef(name), inner);
    if (!value) {
      return mlir::emitError(loc)
             << "function '" << llvm::StringRef(function.name)
             << "' gives no value to its output '" << llvm::StringRef(name)
             << "'";
    }
    scope.values[llvm::StringRef(node.outputs[i])] = value;
    if (inner.counts.contains(llvm::StringRef(name)))
      scope.counts.insert(llvm::StringRef(node.outputs[i]));
  }
  return success();
}

Val GraphImporter::lookup(llvm::StringRef name, Scope& scope) {
  for (Scope* current = &scope; current; current = current->parent) {
    auto found = current->values.find(name);
    if (found != current->values.end()) return found->second;
    auto initializer = current->initializers.find(name);
    if (initializer == current->initializers.end()) continue;
    const TensorProto& tensor = *initializer->second;
    Val value;
    if (auto folded = folded_.find(&tensor); folded != folded_.end())
      value = restore(tensor, folded->second, *current);
    if (!value) {
      auto made = materialize(tensor, name);
      if (failed(made)) return {};
      value = *made;
    }
    current->values[name] = value;
    return value;
  }
  return {};
}

const llvm::SmallVector<Val>* GraphImporter::findSequence(llvm::StringRef name,
                                                          Scope& scope) {
  for (Scope* current = &scope; current; current = current->parent) {
    auto found = current->sequences.find(name);
    if (found != current->sequences.end()) return &found->second;
    if (current->values.count(name) || current->initializers.count(name))
      return nullptr;
  }
  return nullptr;
}

const TensorProto* GraphImporter::findInitializer(llvm::StringRef name,
                                                  Scope& scope, Scope** owner) {
  for (Scope* current = &scope; current; current = current->parent) {
    auto initializer = current->initializers.find(name);
    if (initializer != current->initializers.end()) {
      if (owner) *owner = current;
      return initializer->second;
    }
    if (current->values.count(name)) return nullptr;
  }
  return nullptr;
}

void GraphImporter::noteNeededInputs(mlir::Value value) {
  llvm::SmallVector<mlir::Value> worklist = {value};
  llvm::DenseSet<mlir::Value> seen;
  while (!worklist.empty()) {
    mlir::Value current = worklist.pop_back_val();
    if (!seen.insert(current).second) continue;
    for (auto& [name, input] : signature_.inputs()) {
      if (input.value == current) report_.needs_constant_inputs.push_back(name);
    }
    if (mlir::Operation* op = current.getDefiningOp())
      llvm::append_range(worklist, op->getOperands());
  }
}

}  // namespace partita::onnx
