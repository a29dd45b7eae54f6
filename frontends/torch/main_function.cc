// Weights and results of @main.
#include "frontends/torch/graph_importer.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::torch {
namespace {

// Integers and booleans with at most this many elements are constants (shapes,
// indices, masks); larger ones stay in the file.
constexpr int64_t kMaxConstantElements = 4096;

llvm::StringRef kindOf(const InputSpec& spec, const Stored& stored) {
  const bool is_float = mlir::isa<mlir::FloatType>(stored.type.type);
  switch (spec.kind) {
    case InputSpec::Kind::kParameter:
      return is_float && stored.is_trained ? "parameter" : "buffer";
    case InputSpec::Kind::kConstant:
      return "constant";
    default:
      return "buffer";
  }
}

// "y" for the only output without a name, "y0" for one of several.
std::string nameOf(llvm::StringRef path) {
  if (path.empty()) return "y";
  return llvm::isDigit(path.front()) ? ("y" + path).str() : path.str();
}

}  // namespace

const std::string& GraphImporter::firstName(const Stored& stored,
                                            const std::string& name) {
  if (first_names_.empty()) {
    for (const InputSpec& spec : program_.inputs) {
      std::string ignored;
      auto found = weights_.find(spec.target, main_.getContext(), ignored);
      if (mlir::succeeded(found))
        first_names_.try_emplace(found->identity, spec.target);
    }
  }
  return first_names_.try_emplace(stored.identity, name).first->second;
}

Val GraphImporter::materialize(const InputSpec& spec,
                               const std::string& placeholder) {
  std::string message;
  auto stored = weights_.find(spec.target, main_.getContext(), message);
  if (failed(stored)) {
    emitter_.error(message);
    return {};
  }
  if (auto meta = program_.graph.tensors.find(placeholder);
      meta != program_.graph.tensors.end()) {
    bool fits =
        meta->second.sizes.size() == stored->shape.size() &&
        elementTypeOf(meta->second.dtype, main_.getContext()) == stored->type;
    for (size_t i = 0; fits && i < stored->shape.size(); ++i)
      fits = meta->second.sizes[i] == SymInt{stored->shape[i], ""};
    if (!fits) {
      emitter_.error("'" + spec.target +
                     "' is stored with another type or shape than the program "
                     "declares");
      return {};
    }
  }
  Val& shared = shared_[stored->identity];
  if (shared) return shared;
  const bool is_float = mlir::isa<mlir::FloatType>(stored->type.type);
  const auto order = stored->memoryOrder();
  int64_t most = kMaxConstantElements;
  if (is_float && order) most = spec.kind == InputSpec::Kind::kConstant ? 1 : 0;
  if (kindOf(spec, *stored) == "parameter") most = 0;  // may be trained
  if (stored->elements() <= most)
    return shared = emitter_.constant(Weights::decode(*stored),
                                      stored->type.is_unsigned);
  if (!order) {
    emitter_.error("'" + spec.target +
                   "' is stored with gaps or repeated elements, which is not "
                   "supported; export it as a contiguous tensor");
    return {};
  }
  // A transposed weight is loaded as it lies in the file.
  Shape shape;
  for (int64_t dim : *order) shape.push_back(stored->shape[dim]);
  auto source =
      nn::FileAttr::get(main_.getContext(), weights_.path(), stored->offset,
                        stored->byteSize(), stored->type.type);
  const Val argument = signature_.addWeight(
      firstName(*stored, spec.target),
      mlir::RankedTensorType::get(shape, stored->type.type),
      stored->type.is_unsigned, kindOf(spec, *stored), source);
  return shared =
             emitter_.transpose(argument, builder::inversePermutation(*order));
}

LogicalResult GraphImporter::finishMain(Scope& scope) {
  emitter_.start(main_.getLoc());
  llvm::SmallVector<builder::Result> results;
  size_t index = 0;
  for (const OutputSpec& spec : program_.outputs) {
    if (spec.kind == OutputSpec::Kind::kMutation) {
      // Batch norms return their statistics by themselves.
      const llvm::StringRef last =
          llvm::StringRef(spec.target)
              .take_back(spec.target.size() - 1 - spec.target.rfind('.'));
      if (last.starts_with("running_") || last == "num_batches_tracked")
        continue;
      return mlir::emitError(main_.getLoc())
             << "a change of buffer '" << spec.target
             << "' is not supported: only batch norms may change theirs";
    }
    const std::string path = index < program_.output_names.size()
                                 ? program_.output_names[index]
                                 : std::to_string(index);
    ++index;
    if (spec.argument.kind != Argument::Kind::kTensor) continue;
    const Val value = lookup(spec.argument.names.front(), scope);
    if (!value) return failure();
    results.push_back({path, value});
  }
  if (results.empty())
    return mlir::emitError(main_.getLoc())
           << "expected outputs that are tensors, found none";
  if (results.size() == 1 && (results.front().name.empty() ||
                              llvm::isDigit(results.front().name.front())))
    results.front().name.clear();
  for (builder::Result& result : results) result.name = nameOf(result.name);
  signature_.finish(results);
  return success();
}

}  // namespace partita::torch
