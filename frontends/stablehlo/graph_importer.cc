// Walks operations in order; handlers build nn operations.
#include "frontends/stablehlo/graph_importer.h"

#include <map>

#include "frontends/stablehlo/handlers.h"
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
  // Manual computations need the mesh in any case.
  const bool has_manual =
      program_
          ->walk([](mlir::Operation* op) {
            return op->getName().getStringRef() == "sdy.manual_computation"
                       ? mlir::WalkResult::interrupt()
                       : mlir::WalkResult::advance();
          })
          .wasInterrupted();
  if ((!ignores_shardings_ || has_manual) &&
      failed(shardings_.read(program_, main_.getLoc())))
    return failure();
  if (!ignores_shardings_)
    shardings_.addMesh(main_->getParentOfType<mlir::ModuleOp>());
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
