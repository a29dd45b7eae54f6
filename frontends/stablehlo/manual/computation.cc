// Imports sdy.manual_computation: divides its operands into entries of leading
// dimensions, imports its body, and joins its results.
#include "frontends/stablehlo/graph_importer.h"
#include "frontends/stablehlo/manual/batch.h"
#include "frontends/stablehlo/op_context.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {
namespace {

// The axes of one dimension: the manual ones first, as Shardy has it.
struct DimAxes {
  Shape manual;
  llvm::SmallVector<dist::AxisAttr> free;
};
using EdgeDims = llvm::SmallVector<DimAxes>;

// The axes of an operand or result. Reports an error at the operation.
FailureOr<EdgeDims> readEdge(OpContext& n, const Shardings& shardings,
                             const ManualAxes& axes, llvm::StringRef list,
                             size_t i, int64_t rank) {
  const auto all = n.op.getAttrOfType<mlir::ArrayAttr>(list);
  if (!all || i >= all.size()) {
    n.error("expected a sharding per operand and result");
    return failure();
  }
  auto sharding = shardings.sharding(all[i], rank, n.e.loc());
  if (failed(sharding)) {
    // The cause was reported.
    n.error("cannot read sharding " + llvm::Twine(i) + " of its " + list);
    return failure();
  }
  EdgeDims dims(rank);
  for (auto [dim, given] : llvm::zip(dims, sharding->getDims())) {
    for (dist::AxisAttr axis : given.getAxes()) {
      const int64_t manual = axes.find(axis.getName());
      if (manual < 0) {
        dim.free.push_back(axis);
      } else if (!axis.isWhole() || !dim.free.empty()) {
        n.unsupported("a part of manual axis '" + axis.getName() +
                      "', or one behind an axis that is not manual,");
        return failure();
      } else {
        dim.manual.push_back(manual);
      }
    }
  }
  return dims;
}

llvm::SmallVector<dist::DimAttr> freeAxes(Emitter& e, const EdgeDims& dims) {
  llvm::SmallVector<dist::DimAttr> result;
  for (const DimAxes& dim : dims)
    result.push_back(dist::DimAttr::get(e.builder().getContext(), dim.free,
                                        /*open=*/true));
  return result;
}

// Positions in a tensor whose dimensions are split into axes and the rest.
struct SplitDims {
  Shape sizes;
  Shape axis_places;   // by manual axis; -1 where it does not occur
  Shape local_places;  // by dimension
};

SplitDims splitDims(const ManualAxes& axes, const EdgeDims& dims, Dims local) {
  SplitDims result;
  result.axis_places.assign(axes.all().size(), -1);
  for (auto [dim, size] : llvm::zip(dims, local)) {
    for (int64_t axis : dim.manual) {
      result.axis_places[axis] = static_cast<int64_t>(result.sizes.size());
      result.sizes.push_back(axes.sizes()[axis]);
    }
    result.local_places.push_back(static_cast<int64_t>(result.sizes.size()));
    result.sizes.push_back(size);
  }
  return result;
}

// The order of a batched value's dimensions in the split tensor.
Shape leadingFirst(const SplitDims& split, Shape& axes) {
  Shape perm;
  for (auto [axis, place] : llvm::enumerate(split.axis_places)) {
    if (place < 0) continue;
    axes.push_back(static_cast<int64_t>(axis));
    perm.push_back(place);
  }
  perm.append(split.local_places.begin(), split.local_places.end());
  return perm;
}

Batched divide(Batcher& b, Val whole, const EdgeDims& dims, Dims local) {
  const SplitDims split = splitDims(b.axes, dims, local);
  Batched result;
  const Shape perm = leadingFirst(split, result.axes);
  result.val = b.e.transpose(b.e.reshape(whole, split.sizes), perm);
  return b.e.failed() ? result : b.place(result, freeAxes(b.e, dims));
}

Val join(Batcher& b, Batched x, const EdgeDims& dims) {
  const Shape local(x.localShape());
  const SplitDims split = splitDims(b.axes, dims, local);
  Shape axes;
  const Shape perm = leadingFirst(split, axes);
  // A result that the program declares equal along an axis: the first entry.
  for (int64_t i = x.lead(); i-- > 0;) {
    if (llvm::is_contained(axes, x.axes[i])) continue;
    Shape shape(x.val.shape());
    shape.erase(shape.begin() + i);
    x.val = b.e.reshape(b.e.sliceDim(x.val, i, 0, 1), shape);
    x.axes.erase(x.axes.begin() + i);
  }
  x = b.place(b.spread(x, axes), freeAxes(b.e, dims));
  Shape joined(local);
  for (auto [dim, size] : llvm::zip(dims, joined))
    size *= b.axes.sizeOf(dim.manual);
  return b.e.reshape(b.e.transpose(x.val, builder::inversePermutation(perm)),
                     joined);
}

void eraseUnused(mlir::Block& block) {
  llvm::SmallVector<mlir::Operation*> ops;
  for (mlir::Operation& op : block.without_terminator()) ops.push_back(&op);
  for (mlir::Operation* op : llvm::reverse(ops))
    if (op->use_empty()) op->erase();
}

}  // namespace

FailureOr<Values> GraphImporter::importManualComputation(OpContext& n) {
  const mlir::Location loc = emitter_.loc();
  llvm::StringSet<> names;
  if (const auto given = n.op.getAttrOfType<mlir::ArrayAttr>("manual_axes"))
    for (mlir::Attribute name : given)
      if (auto text = mlir::dyn_cast<mlir::StringAttr>(name))
        names.insert(text.getValue());
  if (!shardings_.mesh() || n.op.getNumRegions() != 1 ||
      !n.op.getRegion(0).hasOneBlock()) {
    n.error("expected a mesh with axes, and a body of one block");
    return failure();
  }
  ManualAxes axes(shardings_.mesh(), shardings_.devices(), names);
  Batcher batcher(emitter_, axes, !ignores_shardings_);
  const Values operands = n.all();
  if (n.failed()) return failure();

  // The body, on local values.
  mlir::Block& block = n.op.getRegion(0).front();
  if (block.getNumArguments() != operands.size()) {
    n.error("expected an argument of the body per operand");
    return failure();
  }
  mlir::OwningOpRef<mlir::func::FuncOp> body(mlir::func::FuncOp::create(
      loc, "body", mlir::FunctionType::get(loc.getContext(), {}, {})));
  mlir::Block* local = body->addEntryBlock();
  Values arguments;
  for (auto [i, argument] : llvm::enumerate(block.getArguments())) {
    const ValueType type = valueType(argument.getType());
    const Val whole = operands[i];
    auto dims = readEdge(n, shardings_, axes, "in_shardings", i, whole.rank());
    if (failed(dims)) return failure();
    Shape expected(whole.shape());
    for (auto [dim, size] : llvm::zip(*dims, expected))
      size = size % axes.sizeOf(dim.manual) == 0
                 ? size / axes.sizeOf(dim.manual)
                 : -1;
    if (!type.is_static || !(type.element == whole.elementType()) ||
        type.shape != expected) {
      n.error("expected operand " + llvm::Twine(i) + " of " +
              toString(whole.shape()) +
              " to have a shard per device, found an argument of " +
              toString(type.shape));
      return failure();
    }
    arguments.push_back(
        {local->addArgument(emitter_.tensor(type.shape, type.element.type),
                            loc),
         type.element.is_unsigned});
    batcher.set(arguments.back().value,
                divide(batcher, whole, *dims, type.shape));
  }
  if (emitter_.failed()) return failure();
  Values results;
  {
    mlir::OpBuilder::InsertionGuard guard(emitter_.builder());
    emitter_.builder().setInsertionPointToEnd(local);
    // Values of the body end with it.
    llvm::DenseMap<mlir::Value, Values> rows;
    std::swap(rows, rows_);
    manual_ = &axes;
    auto found = importRegion(n.op.getRegion(0), arguments);
    manual_ = nullptr;
    rows_ = std::move(rows);
    if (failed(found)) return failure();
    llvm::SmallVector<mlir::Value> values;
    for (Val value : results = *found) values.push_back(value.value);
    mlir::func::ReturnOp::create(emitter_.builder(), loc, values);
  }
  eraseUnused(*local);
  for (mlir::Operation& op : local->without_terminator())
    if (!batcher.build(op)) return failure();

  emitter_.start(loc);
  for (auto [i, result] : llvm::enumerate(results)) {
    Batched whole = batcher.get(result.value);
    whole.val.is_unsigned = result.is_unsigned;
    auto dims = readEdge(n, shardings_, axes, "out_shardings", i,
                         static_cast<int64_t>(whole.localShape().size()));
    if (failed(dims)) return failure();
    auto constrained =
        constrain(join(batcher, whole, *dims),
                  n.op.getAttrOfType<mlir::ArrayAttr>("out_shardings")[i]);
    if (failed(constrained)) {
      n.error("cannot divide its result");
      return failure();
    }
    result = *constrained;
  }
  return results;
}

}  // namespace partita::stablehlo
