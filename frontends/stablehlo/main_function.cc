// Arguments and results of @main.
#include <map>
#include <utility>
#include <vector>

#include "frontends/stablehlo/find_weights.h"
#include "frontends/stablehlo/graph_importer.h"
#include "frontends/stablehlo/names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

namespace partita::stablehlo {
namespace {

// The dictionary of argument or result `i` of a function.
mlir::DictionaryAttr attributesOf(mlir::Operation* function,
                                  llvm::StringRef list, size_t i) {
  const auto all = function->getAttrOfType<mlir::ArrayAttr>(list);
  return all && i < all.size() ? mlir::dyn_cast<mlir::DictionaryAttr>(all[i])
                               : mlir::DictionaryAttr();
}

// The first of `name`, `name`_i, `name`_(i+1), ... that is not taken, which it
// then is. partita/jax_program.py makes the same names.
std::string takeName(llvm::StringSet<>& taken, llvm::StringRef name, size_t i) {
  std::string result = name.str();
  for (; !taken.insert(result).second; ++i)
    result = (name + "_" + llvm::Twine(i)).str();
  return result;
}

// For each donated argument, the result that takes its memory. JAX says which
// (tf.aliasing_output), or leaves the choice to the compiler
// (jax.buffer_donor): then it is the first result of the argument's type that
// is left.
FailureOr<std::map<size_t, int64_t>> pairDonated(mlir::Operation* function,
                                                 mlir::Block& body) {
  const mlir::OperandRange results = body.back().getOperands();
  std::map<size_t, int64_t> pairs;
  llvm::SmallVector<bool> taken(results.size(), false);
  llvm::SmallVector<size_t> donors;
  for (size_t i = 0; i < body.getNumArguments(); ++i) {
    const mlir::DictionaryAttr attributes =
        attributesOf(function, "arg_attrs", i);
    if (!attributes) continue;
    const auto alias =
        attributes.getAs<mlir::IntegerAttr>("tf.aliasing_output");
    if (!alias) {
      const auto donor = attributes.getAs<mlir::BoolAttr>("jax.buffer_donor");
      if (donor && donor.getValue()) donors.push_back(i);
      continue;
    }
    const uint64_t result = alias.getValue().getLimitedValue();
    if (result >= results.size() || taken[result])
      return mlir::emitError(function->getLoc())
             << "expected a donated argument for each of " << results.size()
             << " results at most, found result " << result << " for argument "
             << i;
    taken[result] = true;
    pairs[i] = static_cast<int64_t>(result);
  }
  for (size_t donor : donors) {
    for (size_t result = 0; result < results.size(); ++result) {
      if (taken[result] ||
          results[result].getType() != body.getArgument(donor).getType())
        continue;
      taken[result] = true;
      pairs[donor] = static_cast<int64_t>(result);
      break;
    }
  }
  return pairs;
}

}  // namespace

LogicalResult GraphImporter::declareArguments(mlir::Operation* function,
                                              mlir::Block& body) {
  auto found = pairDonated(function, body);
  if (failed(found)) return failure();
  const std::map<size_t, int64_t> donated = std::move(*found);
  llvm::StringSet<> names;
  struct Stored {
    mlir::BlockArgument argument;
    std::string name;
    ValueType type;
  };
  llvm::SmallVector<Stored> stored;
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    const ValueType type = valueType(argument.getType());
    std::string name;
    if (auto loc = mlir::dyn_cast<mlir::NameLoc>(argument.getLoc()))
      name = dottedPath(loc.getName());
    if (name.empty()) name = "arg" + std::to_string(i);
    name = takeName(names, name, i);
    if (!type.is_static || !type.element.type)
      return mlir::emitError(main_.getLoc())
             << "argument '" << name << "' is " << typeName(argument.getType())
             << (type.element.type
                     ? ": expected a static shape; export the function for "
                       "arguments with sizes, without symbolic dimensions"
                     : ": expected a tensor of booleans, of integers of 8 to "
                       "64 bits, or of floats of 16 to 64 bits");
    if (const auto updated = donated.find(i); updated != donated.end()) {
      updates_[updated->second] = name;
      stored.push_back({argument, name, type});
      continue;
    }
    values_[argument] = signature_.addInput(
        name, mlir::RankedTensorType::get(type.shape, type.element.type),
        type.element.is_unsigned);
  }
  // Stored tensors follow the inputs.
  for (const Stored& state : stored)
    values_[state.argument] = states_[state.name] = signature_.addState(
        state.name,
        mlir::RankedTensorType::get(state.type.shape, state.type.element.type),
        state.type.element.is_unsigned);
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    const mlir::DictionaryAttr attributes =
        attributesOf(function, "arg_attrs", i);
    const Val value = values_.lookup(argument);
    auto given = shardingOf(attributes);
    if (failed(given)) return failure();
    if (!*given) continue;
    auto sharding = shardings_.sharding(*given, value.rank(), main_.getLoc());
    if (failed(sharding)) return failure();
    if (*sharding) argument_shardings_[value.value] = *sharding;
  }
  return success();
}

LogicalResult GraphImporter::finishMain(mlir::Operation* function,
                                        const Values& results) {
  emitter_.start(main_.getLoc());
  llvm::SmallVector<builder::Result> outputs, updates;
  llvm::StringSet<> names;
  for (auto [i, result] : llvm::enumerate(results)) {
    const mlir::DictionaryAttr attributes =
        attributesOf(function, "res_attrs", i);
    Val value = result;
    auto given = shardingOf(attributes);
    if (failed(given)) return failure();
    if (*given) {
      auto constrained = constrain(value, *given);
      if (failed(constrained)) return failure();
      value = *constrained;
    }
    if (auto updated = updates_.find(static_cast<int64_t>(i));
        updated != updates_.end()) {
      const Val state = states_.lookup(updated->second);
      if (value.shape() != state.shape() ||
          !(value.elementType() == state.elementType()))
        return mlir::emitError(main_.getLoc())
               << "expected donated argument '" << updated->second << "' of "
               << toString(state.elementType()) << " "
               << builder::toString(state.shape())
               << " to have the type of result " << i << ", found "
               << toString(value.elementType()) << " "
               << builder::toString(value.shape());
      updates.push_back({updated->second, value, /*is_update=*/true});
      continue;
    }
    const auto info =
        attributes ? attributes.getAs<mlir::StringAttr>("jax.result_info")
                   : mlir::StringAttr();
    std::string name = info ? dottedPath(info.getValue()) : "";
    if (name.empty())
      name = results.size() == 1 ? "result" : "result." + std::to_string(i);
    outputs.push_back({takeName(names, name, i), value});
  }
  outputs.append(updates.begin(), updates.end());
  if (outputs.empty())
    return mlir::emitError(main_.getLoc())
           << "expected results that are tensors, found none";
  signature_.finish(outputs);
  markWeights(main_);
  for (mlir::BlockArgument argument : main_.getArguments())
    if (dist::ShardingAttr sharding = argument_shardings_.lookup(argument))
      main_.setArgAttr(argument.getArgNumber(), dist::kShardingAttr, sharding);
  return success();
}

FailureOr<mlir::Attribute> GraphImporter::shardingOf(
    mlir::DictionaryAttr attributes) {
  if (!attributes || ignores_shardings_) return mlir::Attribute();
  if (attributes.contains("mhlo.sharding"))
    return mlir::emitError(main_.getLoc())
           << "expected shardings of Shardy, found mhlo.sharding of an older "
              "exporter, which is not supported; export with "
              "jax_use_shardy_partitioner, or import with --ignore-shardings";
  return attributes.get("sdy.sharding");
}

}  // namespace partita::stablehlo
