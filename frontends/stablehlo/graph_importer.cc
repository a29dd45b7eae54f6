// Walks operations in order; handlers build nn operations.
#include "frontends/stablehlo/graph_importer.h"

#include <map>

#include "frontends/stablehlo/handlers.h"
#include "frontends/stablehlo/names.h"
#include "frontends/stablehlo/op_context.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace partita::stablehlo {
namespace {

// Limits of files that unroll or call without end.
constexpr int kMaxDepth = 64;
constexpr int64_t kMaxOperations = 4'000'000;

// The innermost line of the user's program. Parts of a location may be shared
// and nest without end, so each is visited once, and not all of very many.
mlir::FileLineColLoc lineOf(mlir::Location loc) {
  constexpr size_t kMaxVisited = 1000;
  llvm::SmallVector<mlir::Location> left = {loc};
  llvm::SmallPtrSet<const void*, 16> visited;
  while (!left.empty() && visited.size() < kMaxVisited) {
    const mlir::Location next = left.pop_back_val();
    if (!visited.insert(next.getAsOpaquePointer()).second) continue;
    if (auto line = mlir::dyn_cast<mlir::FileLineColLoc>(next)) return line;
    if (auto name = mlir::dyn_cast<mlir::NameLoc>(next)) {
      left.push_back(name.getChildLoc());
    } else if (auto call = mlir::dyn_cast<mlir::CallSiteLoc>(next)) {
      left.push_back(call.getCaller());
      left.push_back(call.getCallee());
    } else if (auto fused = mlir::dyn_cast<mlir::FusedLoc>(next)) {
      for (mlir::Location part :
           llvm::reverse(fused.getLocations().take_front(kMaxVisited)))
        left.push_back(part);
    }
  }
  return nullptr;
}

// "/jit(f)/dot_general", and the line.
mlir::Location locationOf(mlir::Operation& op) {
  const auto name = mlir::dyn_cast<mlir::NameLoc>(op.getLoc());
  const mlir::FileLineColLoc line = lineOf(op.getLoc());
  // What prints a location visits all of it: without a line, it stays out.
  if (!name)
    return line ? mlir::Location(line) : mlir::UnknownLoc::get(op.getContext());
  mlir::Location path = mlir::NameLoc::get(
      mlir::StringAttr::get(op.getContext(), "/" + name.getName().getValue()));
  if (!line) return path;
  return mlir::FusedLoc::get(op.getContext(), {path, line});
}

std::string describe(mlir::Operation& op) {
  std::string text;
  if (auto name = mlir::dyn_cast<mlir::NameLoc>(op.getLoc()))
    text = name.getName().str();
  if (mlir::FileLineColLoc line = lineOf(op.getLoc()))
    text += (text.empty() ? "" : " at ") + line.getFilename().str() + ":" +
            std::to_string(line.getLine());
  return text;
}

llvm::StringRef stringAttr(mlir::Operation* op, llvm::StringRef name) {
  const auto value = op->getAttrOfType<mlir::StringAttr>(name);
  return value ? value.getValue() : llvm::StringRef();
}

// The dictionary of argument or result `i` of a function.
mlir::DictionaryAttr attributesOf(mlir::Operation* function,
                                  llvm::StringRef list, size_t i) {
  const auto all = function->getAttrOfType<mlir::ArrayAttr>(list);
  return all && i < all.size() ? mlir::dyn_cast<mlir::DictionaryAttr>(all[i])
                               : mlir::DictionaryAttr();
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

// The first of `name`, `name`_i, `name`_(i+1), ... that is not taken, which it
// then is. partita/jax_program.py makes the same names.
std::string takeName(llvm::StringSet<>& taken, llvm::StringRef name, size_t i) {
  std::string result = name.str();
  for (; !taken.insert(result).second; ++i)
    result = (name + "_" + llvm::Twine(i)).str();
  return result;
}

// The terminators, and operations that only declare.
bool isSkipped(llvm::StringRef name) {
  return name == "return" || name == "sdy.return" || name == "func" ||
         name == "sdy.mesh";
}

}  // namespace

GraphImporter::GraphImporter(mlir::ModuleOp program,
                             const std::string& producer,
                             bool ignores_shardings, mlir::func::FuncOp main)
    : program_(program),
      producer_(producer),
      ignores_shardings_(ignores_shardings),
      main_(main),
      emitter_(mlir::OpBuilder::atBlockEnd(main.addEntryBlock())),
      signature_(main, emitter_) {
  emitter_.start(main.getLoc());
}

LogicalResult GraphImporter::run() {
  for (mlir::Operation& op : *program_.getBody())
    if (shortName(op) == "func") functions_[stringAttr(&op, "sym_name")] = &op;
  mlir::Operation* main = functions_.lookup("main");
  if (!main || main->getNumRegions() != 1 || !main->getRegion(0).hasOneBlock())
    return mlir::emitError(main_.getLoc())
           << "expected a function 'main' with one block";
  mlir::Block& body = main->getRegion(0).front();
  if (!ignores_shardings_) {
    if (failed(shardings_.read(program_, main_.getLoc()))) return failure();
    shardings_.addMesh(main_->getParentOfType<mlir::ModuleOp>());
  }
  if (failed(declareArguments(main, body)) || failed(checkSupported()))
    return failure();
  Values arguments;
  for (mlir::BlockArgument argument : body.getArguments())
    arguments.push_back(values_.lookup(argument));
  auto results = importRegion(main->getRegion(0), arguments);
  return failed(results) ? failure() : finishMain(main, *results);
}

LogicalResult GraphImporter::checkSupported() {
  std::map<std::string, llvm::SmallVector<std::string>> found;
  program_->walk([&](mlir::Operation* op) {
    if (op == program_.getOperation()) return;
    const llvm::StringRef name = shortName(*op);
    if (!isSkipped(name) && !findHandler(name))
      found[op->getName().getStringRef().str()].push_back(describe(*op));
  });
  if (found.empty()) return success();
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(main_.getLoc());
  diagnostic << "operations that are not supported (" << producer_ << "):";
  for (auto& [name, places] : found) {
    constexpr size_t kListed = 8;
    diagnostic << "\n  " << name << ", " << places.size()
               << (places.size() == 1 ? " time: " : " times: ")
               << llvm::join(llvm::ArrayRef(places).take_front(kListed), ", ")
               << (places.size() > kListed ? ", ..." : "");
  }
  return diagnostic;
}

LogicalResult GraphImporter::declareArguments(mlir::Operation* function,
                                              mlir::Block& body) {
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
    const mlir::DictionaryAttr attributes =
        attributesOf(function, "arg_attrs", i);
    const auto alias =
        attributes ? attributes.getAs<mlir::IntegerAttr>("tf.aliasing_output")
                   : mlir::IntegerAttr();
    if (alias && alias.getValue().getSignificantBits() <= 32) {
      if (!updates_
               .try_emplace(alias.getValue().getSExtValue(),
                            Donated{name, type.shape, type.element})
               .second)
        return mlir::emitError(main_.getLoc())
               << "expected one donated argument for result "
               << alias.getValue().getSExtValue() << ", found '" << name
               << "' and another";
      stored.push_back({argument, name, type});
      continue;
    }
    values_[argument] = signature_.addInput(
        name, mlir::RankedTensorType::get(type.shape, type.element.type),
        type.element.is_unsigned);
  }
  // Stored tensors follow the inputs.
  for (const Stored& state : stored)
    values_[state.argument] = signature_.addState(
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
      const Donated& donated = updated->second;
      if (value.shape() != Dims(donated.shape) ||
          !(value.elementType() == donated.element))
        return mlir::emitError(main_.getLoc())
               << "expected donated argument '" << donated.name << "' of "
               << toString(donated.element) << " " << toString(donated.shape)
               << " to have the type of result " << i << ", found "
               << toString(value.elementType()) << " "
               << toString(value.shape());
      updates.push_back({donated.name, value, /*is_update=*/true});
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
  for (const auto& [result, donated] : updates_)
    if (result < 0 || result >= static_cast<int64_t>(results.size()))
      return mlir::emitError(main_.getLoc())
             << "expected donated argument '" << donated.name
             << "' to have the memory of a result, found result " << result
             << " of " << results.size();
  outputs.append(updates.begin(), updates.end());
  if (outputs.empty())
    return mlir::emitError(main_.getLoc())
           << "expected results that are tensors, found none";
  signature_.finish(outputs);
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

FailureOr<Val> GraphImporter::constrain(Val value, mlir::Attribute sharding) {
  if (ignores_shardings_) return value;
  auto own = shardings_.sharding(sharding, value.rank(), emitter_.loc());
  if (failed(own)) return failure();
  // Every device holds a constant.
  if (!*own || value.constant()) return value;
  value.value = dist::ConstraintOp::create(emitter_.builder(), emitter_.loc(),
                                           value.value, *own);
  return value;
}

FailureOr<Values> GraphImporter::importRegion(mlir::Region& region,
                                              llvm::ArrayRef<Val> arguments) {
  if (depth_ >= kMaxDepth) {
    emitter_.error("regions and calls nest more than " +
                   std::to_string(kMaxDepth) + " deep");
    return failure();
  }
  ++depth_;
  llvm::scope_exit leave([&] { --depth_; });
  // An empty region, too, so that loops over nothing end.
  if (failed(countOne())) return failure();
  if (!region.hasOneBlock() || region.front().empty() ||
      region.front().getNumArguments() != arguments.size()) {
    emitter_.error("expected a region of one block with " +
                   std::to_string(arguments.size()) + " arguments");
    return failure();
  }
  mlir::Block& block = region.front();
  const mlir::Location loc = emitter_.loc();
  for (auto [argument, value] : llvm::zip(block.getArguments(), arguments))
    values_[argument] = value;
  for (mlir::Operation& op : block)
    if (&op != &block.back() && failed(importOp(op))) return failure();
  emitter_.start(loc);
  mlir::Operation& last = block.back();
  if (shortName(last) != "return" && shortName(last) != "sdy.return") {
    emitter_.error("expected a region that ends with a return");
    return failure();
  }
  OpContext context(*this, last, "return");
  Values results = context.all();
  if (emitter_.failed()) return failure();
  return results;
}

LogicalResult GraphImporter::countOne() {
  if (++imported_ <= kMaxOperations) return success();
  emitter_.error("the program has more than " + std::to_string(kMaxOperations) +
                 " operations after calls and loops are unrolled");
  return failure();
}

LogicalResult GraphImporter::importOp(mlir::Operation& op) {
  emitter_.start(locationOf(op));
  if (failed(countOne())) return failure();
  const llvm::StringRef name = shortName(op);
  const Handler handler = findHandler(name);
  OpContext context(*this, op, name);
  if (!handler) {
    context.unsupported("this operation");
    return failure();
  }
  const Val value = handler(context);
  if (value) context.out(0, value);
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    if (failed(checkResult(context, i))) return failure();
  return success(!emitter_.failed());
}

// A difference is a defect of the file, or of a handler.
LogicalResult GraphImporter::checkResult(OpContext& context, unsigned index) {
  if (emitter_.failed()) return failure();
  const auto found = values_.find(context.op.getResult(index));
  // Tokens and the like.
  const ValueType type = context.result(index);
  if (emitter_.failed()) return failure();
  if (found == values_.end() || !found->second) {
    context.error("no value for result " + llvm::Twine(index));
    return failure();
  }
  const Val value = found->second;
  if (Dims(type.shape) == value.shape() && type.element == value.elementType())
    return success();
  context.error("expected a result of type " + toString(type.element) + " " +
                toString(type.shape) + " as the file says, found " +
                toString(value.elementType()) + " " + toString(value.shape()));
  return failure();
}

FailureOr<Values> GraphImporter::call(llvm::StringRef name,
                                      llvm::ArrayRef<Val> arguments) {
  mlir::Operation* function = functions_.lookup(name);
  if (!function || function->getNumRegions() != 1) {
    emitter_.error("expected a function '" + name + "', found none");
    return failure();
  }
  return importRegion(function->getRegion(0), arguments);
}

}  // namespace partita::stablehlo
