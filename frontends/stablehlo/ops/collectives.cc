// Collectives in the body of a manual computation. The body is imported as one
// device's program, in which an operation stands for each collective.
#include "frontends/stablehlo/manual/batch.h"
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::stablehlo {
namespace {

// False, with an error, outside of a manual computation, and for operations
// over replicas.
bool isInBody(OpContext& n) {
  if (!n.manual()) {
    n.unsupported("a collective outside of shard_map");
    return false;
  }
  if (n.has("channel_id") && n.integer("channel_id") <= 0 && !n.failed())
    n.unsupported("a collective over replicas of the program");
  return !n.failed();
}

// Reads the groups and returns the number of members of one; 0 after an error.
int64_t readGroups(OpContext& n, Collective& c) {
  if (!isInBody(n)) return 0;
  const auto groups =
      n.op.getAttrOfType<mlir::DenseElementsAttr>("replica_groups");
  const Shape devices = n.ints("replica_groups");
  if (n.failed()) return 0;
  const auto type =
      groups ? mlir::cast<mlir::ShapedType>(groups.getType()) : nullptr;
  if (!type || type.getRank() != 2) {
    n.error("expected groups of devices");
    return 0;
  }
  const std::string error =
      n.manual()->axesOfGroups(devices, type.getDimSize(1), c.axes);
  if (!error.empty()) n.error(error);
  return n.failed() ? 0 : type.getDimSize(1);
}

// The operation that stands for a collective, with a result of this shape.
Val standIn(OpContext& n, const Collective& c, llvm::ArrayRef<Val> operands,
            Dims shape, ElementType element) {
  llvm::SmallVector<mlir::Value> values;
  for (Val operand : operands) values.push_back(operand.value);
  const mlir::RankedTensorType type = n.e.tensor(shape, element.type);
  if (n.failed()) return {};
  mlir::OpBuilder& builder = n.e.builder();
  auto op = mlir::UnrealizedConversionCastOp::create(builder, n.e.loc(), {type},
                                                     values);
  op->setAttr(kCollectiveAttr, builder.getI64IntegerAttr(static_cast<int64_t>(
                                   n.manual()->collectives.size())));
  n.manual()->collectives.push_back(c);
  return {op->getResult(0), element.is_unsigned};
}

// A reduction of one operand; booleans are reduced as integers.
Val reduceAcross(OpContext& n, Collective c, Val x, Dims shape) {
  const auto kind = reduceKindOf(n.onlyOperation(0), x);
  if (!kind)
    return n.unsupported(
        "a reduction by another function than add, multiply, maximum, minimum, "
        "and, or");
  c.reduction = *kind;
  c.is_unsigned = x.is_unsigned;
  const ElementType type = x.elementType();
  if (x.isBool()) x = n.e.cast(x, n.e.builder().getI32Type());
  const Val result = standIn(n, c, {x}, shape, x.elementType());
  return n.failed() ? Val() : n.e.cast(result, type);
}

}  // namespace

Val importAllReduce(OpContext& n) {
  Collective c = {Collective::Kind::kAllReduce};
  if (readGroups(n, c) == 0) return {};
  for (auto [i, x] : llvm::enumerate(n.all()))
    n.out(static_cast<unsigned>(i), reduceAcross(n, c, x, x.shape()));
  return {};
}

Val importAllGather(OpContext& n) {
  Collective c = {Collective::Kind::kAllGather};
  const int64_t members = readGroups(n, c);
  if (members == 0) return {};
  for (auto [i, x] : llvm::enumerate(n.all())) {
    c.dim = n.dimension("all_gather_dim", x.rank());
    if (n.failed()) return {};
    c.is_unsigned = x.is_unsigned;
    Shape shape(x.shape());
    shape[c.dim] *= members;
    n.out(static_cast<unsigned>(i), standIn(n, c, {x}, shape, x.elementType()));
  }
  return {};
}

Val importReduceScatter(OpContext& n) {
  Collective c = {Collective::Kind::kReduceScatter};
  const int64_t members = readGroups(n, c);
  if (members == 0) return {};
  const Val x = n.in(0);
  c.dim = n.dimension("scatter_dimension", x.rank());
  if (n.failed()) return {};
  if (x.dim(c.dim) % members != 0)
    return n.error("expected a size that is a multiple of " +
                   llvm::Twine(members) + ", found " + toString(x.shape()));
  Shape shape(x.shape());
  shape[c.dim] /= members;
  return reduceAcross(n, c, x, shape);
}

Val importAllToAll(OpContext& n) {
  Collective c = {Collective::Kind::kAllToAll};
  const int64_t members = readGroups(n, c);
  if (members == 0) return {};
  const int64_t count = n.integer("split_count");
  for (auto [i, x] : llvm::enumerate(n.all())) {
    c.dim = n.dimension("split_dimension", x.rank());
    c.concat_dim = n.dimension("concat_dimension", x.rank());
    if (n.failed()) return {};
    if (count != members || x.dim(c.dim) % members != 0)
      return n.error("expected a part per member of a group of " +
                     llvm::Twine(members) + ", found " + llvm::Twine(count) +
                     " parts of " + toString(x.shape()));
    c.is_unsigned = x.is_unsigned;
    Shape shape(x.shape());
    shape[c.dim] /= members;
    shape[c.concat_dim] *= members;
    n.out(static_cast<unsigned>(i), standIn(n, c, {x}, shape, x.elementType()));
  }
  return {};
}

Val importCollectivePermute(OpContext& n) {
  if (!isInBody(n)) return {};
  Collective c = {Collective::Kind::kPermute};
  const Val x = n.in(0);
  const Shape pairs = n.ints("source_target_pairs");
  if (n.failed()) return {};
  const std::string error = n.manual()->axesOfPairs(pairs, c.axes, c.sources);
  if (!error.empty()) return n.error(error);
  c.is_unsigned = x.is_unsigned;
  return standIn(n, c, {x}, x.shape(), x.elementType());
}

Val importPartitionId(OpContext& n) {
  if (!isInBody(n)) return {};
  return standIn(n, {Collective::Kind::kPartitionId}, {}, {},
                 n.result().element);
}

// Exported programs have one replica.
Val importReplicaId(OpContext& n) {
  const ElementType type = n.result().element;
  return n.failed() ? Val() : n.e.splat(0, type);
}

Val importManualComputation(OpContext& n) {
  if (n.manual()) return n.unsupported("a manual computation within another");
  const Values results = n.manualComputation();
  n.outAll(results);
  return {};
}

}  // namespace partita::stablehlo
