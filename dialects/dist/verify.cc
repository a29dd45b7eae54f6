// Verifiers of the dist dialect. `Cn` is the constraint in the description of
// the operation or of the dialect.
#include "dialects/nn/verify.h"

#include "dialects/dist/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace partita::dist {

using llvm::ArrayRef;
using mlir::Attribute;
using mlir::failed;
using mlir::failure;
using mlir::InFlightDiagnostic;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;

mlir::ParseResult parseAxes(mlir::OpAsmParser& parser, AxesAttr& attribute);
void printAxes(mlir::OpAsmPrinter& printer, mlir::Operation*, AxesAttr axes);

namespace {

std::string toString(AxisAttr axis) {
  std::string text;
  llvm::raw_string_ostream os(text);
  axis.printShort(os);
  return text;
}

RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

LogicalResult onMesh(mlir::Operation* op, ArrayRef<AxisAttr> axes) {
  return verifyAxes([&] { return op->emitOpError(); }, findMesh(op), axes);
}

int64_t groupSize(mlir::Operation* op, AxesAttr axes) {
  return axes.empty() ? 1 : findMesh(op).sizeOf(axes.getAxes());
}

// The types may differ only in the sizes of `dims`.
LogicalResult checkTypes(mlir::Operation* op, ArrayRef<int64_t> dims) {
  const RankedTensorType input = typeOf(op->getOperand(0)),
                         result = typeOf(op->getResult(0));
  const int64_t rank = input.getRank();
  for (int64_t dim : dims)
    if (dim < 0 || dim >= rank)
      return op->emitOpError() << "expected a dimension of a tensor of rank "
                               << rank << ", found " << dim;
  llvm::SmallVector<int64_t> expected(input.getShape());
  if (result.getRank() == rank)
    for (int64_t dim : dims) expected[dim] = result.getDimSize(dim);
  if (result == input.clone(expected)) return success();
  return op->emitOpError() << "expected a result of the operand's type, "
                           << input << ", but for dimensions "
                           << nn::listToString(dims) << ", found " << result;
}

// Constraints that sending and returning rows share.
LogicalResult checkRows(mlir::Operation* op, mlir::Value to) {
  const RankedTensorType numbers = typeOf(to), rows = typeOf(op->getOperand(0));
  if (numbers.getRank() != 2 || !numbers.getElementType().isInteger(64) ||
      rows.getRank() != 2)
    return op->emitOpError() << "expected two dimensions, and 'to' of i64, "
                                "found "
                             << rows << " and " << numbers;
  return checkTypes(op, {0});
}

// S rows fit into n blocks of b rows.
LogicalResult checkCover(mlir::Operation* op, AxesAttr axes, int64_t dim,
                         int64_t size, int64_t block) {
  const int64_t devices = groupSize(op, axes);
  if (size <= devices * block) return success();
  return op->emitOpError() << "expected at most " << devices * block
                           << " rows of dimension " << dim << ", " << devices
                           << " blocks of " << block << ", found " << size;
}

// The size of `dim` in the operand and in the result.
std::pair<int64_t, int64_t> sizesOf(mlir::Operation* op, int64_t dim) {
  return {typeOf(op->getOperand(0)).getDimSize(dim),
          typeOf(op->getResult(0)).getDimSize(dim)};
}

LogicalResult checkReduction(mlir::Operation* op, Reduction reduction) {
  const bool logical =
      reduction == Reduction::kAny || reduction == Reduction::kAll;
  mlir::Type element = typeOf(op->getOperand(0)).getElementType();
  if (logical == element.isInteger(1)) return success();
  return op->emitOpError() << "expected '" << NameOf(reduction) << "' of "
                           << (logical ? "i1" : "numbers") << ", found "
                           << element;
}

// The parts of an axis as ranges [pre, pre * size), adjacent ones joined.
using Parts = llvm::SmallVector<std::pair<int64_t, int64_t>>;
Parts partsOf(ArrayRef<AxisAttr> axes, MeshAxisAttr axis) {
  Parts parts;
  for (AxisAttr part : axes) {
    if (part.getName() != axis.getName()) continue;
    const int64_t size = part.isWhole() ? axis.getSize() : part.getSize();
    if (size > 1) parts.push_back({part.getPre(), part.getPre() * size});
  }
  llvm::sort(parts);
  Parts joined;
  for (auto part : parts) {
    if (!joined.empty() && joined.back().second == part.first)
      joined.back().second = part.second;
    else
      joined.push_back(part);
  }
  return joined;
}

}  // namespace

LogicalResult verifyAxes(EmitError error, MeshOp mesh,
                         ArrayRef<AxisAttr> axes) {
  for (AxisAttr axis : axes) {
    if (!mesh)
      return error() << "expected a dist.mesh in the module, found none, but "
                        "the axis "
                     << toString(axis);
    const int64_t index = mesh.indexOf(axis.getName());
    // C1
    if (index < 0) {
      InFlightDiagnostic diagnostic = error();
      diagnostic << "expected an axis of the mesh, found " << toString(axis);
      diagnostic.attachNote(mesh.getLoc()) << "its axes are " << mesh.getAxes();
      return diagnostic;
    }
    const int64_t size = mesh.getAxes().getAxes()[index].getSize();
    if (!axis.isWhole() && size % (axis.getPre() * axis.getSize()) != 0) {
      InFlightDiagnostic diagnostic = error();
      diagnostic << "expected " << axis.getPre() << " times " << axis.getSize()
                 << " to divide the axis's " << size << " positions, found "
                 << toString(axis);
      diagnostic.attachNote(mesh.getLoc()) << "its axes are " << mesh.getAxes();
      return diagnostic;
    }
  }
  return success();  // C2 holds by construction of the attributes
}

LogicalResult verifySharding(EmitError error, MeshOp mesh,
                             ShardingAttr sharding, RankedTensorType type) {
  // C1
  for (DimAttr dim : sharding.getDims())
    if (failed(verifyAxes(error, mesh, dim.getAxes()))) return failure();
  if (failed(verifyAxes(error, mesh, sharding.getReplicated())) ||
      failed(verifyAxes(error, mesh, sharding.getUnreduced())))
    return failure();
  // C3
  if (sharding.getRank() != type.getRank())
    return error() << "expected a sharding with " << type.getRank()
                   << " entries, one per dimension of " << type << ", found "
                   << sharding;
  // C4
  for (auto [i, dim, size] :
       llvm::enumerate(sharding.getDims(), type.getShape())) {
    const int64_t shards =
        dim.getAxes().empty() ? 1 : mesh.sizeOf(dim.getAxes());
    if (dim.getBlock() != 0 && dim.getBlock() * shards < size)
      return error() << "expected blocks that cover the " << size
                     << " rows of dimension " << i << ", found " << shards
                     << " of " << dim.getBlock();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Attributes on operations, arguments and results
//===----------------------------------------------------------------------===//

LogicalResult DistDialect::verifyOperationAttribute(
    mlir::Operation* op, mlir::NamedAttribute attribute) {
  auto error = [&] { return op->emitOpError(); };
  if (attribute.getName() == "dist.barred") {
    if (llvm::isa<mlir::DenseI64ArrayAttr>(attribute.getValue()))
      return success();
    return error()
           << "expected 'dist.barred' to be an array of integers, the "
              "priorities of plan entries that do not apply here, found "
           << attribute.getValue();
  }
  if (attribute.getName() == "dist.long_attention") {
    auto way = llvm::dyn_cast<mlir::IntegerAttr>(attribute.getValue());
    if (way && (way.getInt() == 1 || way.getInt() == 2)) return success();
    return error() << "expected 'dist.long_attention' to be 1 (Ulysses) or 2 "
                      "(ring), found "
                   << attribute.getValue();
  }
  if (attribute.getName() == "dist.row_exchange") {
    auto bound = llvm::dyn_cast<mlir::FloatAttr>(attribute.getValue());
    if (bound && bound.getType().isF64() && bound.getValueAsDouble() >= 0)
      return success();
    return error() << "expected 'dist.row_exchange' to be a number of at least "
                      "0, the bound on the rows that a device receives, found "
                   << attribute.getValue();
  }
  if (attribute.getName() == "dist.annotations") {
    auto count = llvm::dyn_cast<mlir::IntegerAttr>(attribute.getValue());
    if (count && llvm::isa<mlir::ModuleOp>(op)) return success();
    return error() << "expected 'dist.annotations' to be a number, on a "
                      "module, found "
                   << attribute.getValue();
  }
  if (attribute.getName() == "dist.attention") {
    if (llvm::isa<mlir::StringAttr>(attribute.getValue()) &&
        llvm::isa<mlir::ModuleOp>(op))
      return success();
    return error() << "expected 'dist.attention' to be a string, the plan's "
                      "choice of attention, on a module, found "
                   << attribute.getValue();
  }
  if (attribute.getName() == "dist.entries") {
    auto entries = llvm::dyn_cast<mlir::ArrayAttr>(attribute.getValue());
    if (entries && llvm::isa<mlir::ModuleOp>(op) &&
        llvm::all_of(entries, llvm::IsaPred<mlir::StringAttr>))
      return success();
    return error() << "expected 'dist.entries' to be an array of strings, one "
                      "per plan entry, on a module, found "
                   << attribute.getValue();
  }
  if (attribute.getName() != kShardingsAttr)
    return error() << "unknown attribute '" << attribute.getName().getValue()
                   << "'";
  auto shardings = llvm::dyn_cast<mlir::ArrayAttr>(attribute.getValue());
  if (!shardings || shardings.size() != op->getNumResults() ||
      !llvm::all_of(shardings, llvm::IsaPred<ShardingAttr>))
    return error() << "expected '" << kShardingsAttr << "' to be an array of "
                   << op->getNumResults()
                   << " shardings, one per result, found "
                   << attribute.getValue();
  MeshOp mesh = findMesh(op);
  for (auto [type, sharding] : llvm::zip_equal(
           op->getResultTypes(), shardings.getAsRange<ShardingAttr>())) {
    auto tensor = llvm::dyn_cast<RankedTensorType>(type);
    if (tensor && failed(verifySharding(error, mesh, sharding, tensor)))
      return failure();
  }
  return success();
}

namespace {

// `sharding` and `global` are the value's attributes, or null.
LogicalResult verifyValueAttribute(EmitError error, mlir::Operation* op,
                                   mlir::NamedAttribute attribute,
                                   mlir::Type type, Attribute sharding_attr,
                                   Attribute global_attr) {
  if (attribute.getName() != kShardingAttr &&
      attribute.getName() != kGlobalTypeAttr)
    return error() << "unknown attribute '" << attribute.getName().getValue()
                   << "'";
  auto local = llvm::dyn_cast<RankedTensorType>(type);
  auto sharding = llvm::dyn_cast_or_null<ShardingAttr>(sharding_attr);
  if (!local || !sharding)
    return error() << "expected '" << attribute.getName().getValue()
                   << "' on a tensor, with a sharding, found "
                   << attribute.getValue() << " on " << type;
  RankedTensorType global = local;
  if (global_attr) {
    auto type_attr = llvm::dyn_cast<mlir::TypeAttr>(global_attr);
    global = type_attr ? llvm::dyn_cast<RankedTensorType>(type_attr.getValue())
                       : nullptr;
    if (!global)
      return error() << "expected '" << kGlobalTypeAttr
                     << "' to be the undivided tensor's type, found "
                     << global_attr;
  }
  MeshOp mesh = findMesh(op);
  if (failed(verifySharding(error, mesh, sharding, global))) return failure();
  // C5
  if (global_attr && local != localType(mesh, sharding, global))
    return error() << "expected " << localType(mesh, sharding, global)
                   << ", the block of " << global << " under " << sharding
                   << ", found " << local;
  return success();
}

}  // namespace

LogicalResult DistDialect::verifyRegionArgAttribute(
    mlir::Operation* op, unsigned, unsigned index,
    mlir::NamedAttribute attribute) {
  auto function = llvm::dyn_cast<mlir::FunctionOpInterface>(op);
  if (!function) return success();
  return verifyValueAttribute(
      [&] {
        return op->emitError() << "argument " << index << " of '"
                               << function.getName() << "': ";
      },
      op, attribute, function.getArgumentTypes()[index],
      function.getArgAttr(index, kShardingAttr),
      function.getArgAttr(index, kGlobalTypeAttr));
}

LogicalResult DistDialect::verifyRegionResultAttribute(
    mlir::Operation* op, unsigned, unsigned index,
    mlir::NamedAttribute attribute) {
  auto function = llvm::dyn_cast<mlir::FunctionOpInterface>(op);
  if (!function) return success();
  return verifyValueAttribute(
      [&] {
        return op->emitError()
               << "result " << index << " of '" << function.getName() << "': ";
      },
      op, attribute, function.getResultTypes()[index],
      function.getResultAttr(index, kShardingAttr),
      function.getResultAttr(index, kGlobalTypeAttr));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult MeshOp::verify() {
  // C1
  if (getSymName() != kMeshName ||
      !llvm::isa_and_nonnull<mlir::ModuleOp>((*this)->getParentOp()))
    return emitOpError() << "expected to be named @" << kMeshName
                         << " and to stand in a module, found @"
                         << getSymName();
  // C2 holds by construction of the attribute.
  if (!getDeviceIds()) return success();
  // C3
  const int64_t count = getDeviceCount();
  llvm::SmallBitVector seen(count);
  const ArrayRef<int64_t> ids = *getDeviceIds();
  for (int64_t id : ids)
    if (id >= 0 && id < count) seen.set(id);
  if (static_cast<int64_t>(ids.size()) != count || !seen.all())
    return emitOpError() << "expected 'device_ids' to hold each number from 0 "
                            "to "
                         << count - 1 << " once, found "
                         << nn::listToString(ids);
  return success();
}

LogicalResult ConstraintOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  return verifySharding([&] { return emitOpError(); }, findMesh(*this),
                        getSharding(), typeOf(getResult()));  // C1
}

LogicalResult GroupOp::verify() {
  for (GroupOp other : (*this)->getBlock()->getOps<GroupOp>()) {
    if (other == *this) break;
    if (other.getId() != getId()) continue;
    // C1
    if (typeOf(other.getResult()).getShape() == typeOf(getResult()).getShape())
      break;
    InFlightDiagnostic diagnostic =
        emitOpError() << "expected the shape of the other values of group "
                      << getId() << ", found " << getResult().getType();
    diagnostic.attachNote(other.getLoc())
        << "one of them is of " << other.getResult().getType();
    return diagnostic;
  }
  return success();
}

LogicalResult ReshardOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  // C1
  for (ShardingAttr sharding : {getFrom(), getTo()})
    if (failed(verifySharding([&] { return emitOpError(); }, findMesh(*this),
                              sharding, typeOf(getResult()))))
      return failure();
  // C2
  MeshOp mesh = findMesh(*this);
  if (!mesh) return success();
  for (MeshAxisAttr axis : mesh.getAxes().getAxes()) {
    const Parts from = partsOf(getFrom().getUnreduced(), axis);
    for (auto part : partsOf(getTo().getUnreduced(), axis))
      if (llvm::none_of(from, [&](auto other) {
            return other.first <= part.first && part.second <= other.second;
          }))
        return emitOpError() << "expected the axes that stay unreduced to be "
                                "unreduced before, found "
                             << getFrom() << " and " << getTo();
  }
  return success();
}

LogicalResult AllReduceOp::verify() {
  return checkReduction(*this, getReduction());  // C2
}

LogicalResult AllReduceOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  return onMesh(*this, getAxes().getAxes());  // C1
}

LogicalResult AllGatherOp::verify() {
  return checkTypes(*this, {static_cast<int64_t>(getDim())});  // C2
}

LogicalResult AllGatherOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  if (failed(onMesh(*this, getAxes().getAxes()))) return failure();  // C1
  auto [block, size] = sizesOf(*this, getDim());
  return checkCover(*this, getAxes(), getDim(), size, block);  // C3
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(checkTypes(*this, {static_cast<int64_t>(getDim())})))  // C2
    return failure();
  return checkReduction(*this, getReduction());  // C4
}

LogicalResult ReduceScatterOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  if (failed(onMesh(*this, getAxes().getAxes()))) return failure();  // C1
  auto [size, block] = sizesOf(*this, getDim());
  return checkCover(*this, getAxes(), getDim(), size, block);  // C3
}

LogicalResult AllSliceOp::verify() {
  return checkTypes(*this, {static_cast<int64_t>(getDim())});  // C2
}

LogicalResult AllSliceOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  if (failed(onMesh(*this, getAxes().getAxes()))) return failure();  // C1
  auto [size, block] = sizesOf(*this, getDim());
  return checkCover(*this, getAxes(), getDim(), size, block);  // C3
}

LogicalResult AllToAllOp::verify() {
  // C2
  if (getSplitDim() == getConcatDim())
    return emitOpError() << "expected two dimensions, found " << getSplitDim()
                         << " twice";
  return checkTypes(*this, {static_cast<int64_t>(getSplitDim()),
                            static_cast<int64_t>(getConcatDim())});
}

LogicalResult AllToAllOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  if (failed(onMesh(*this, getAxes().getAxes()))) return failure();  // C1
  // C3
  auto [size, block] = sizesOf(*this, getSplitDim());
  if (failed(checkCover(*this, getAxes(), getSplitDim(), size, block)))
    return failure();
  auto [other_block, other_size] = sizesOf(*this, getConcatDim());
  return checkCover(*this, getAxes(), getConcatDim(), other_size, other_block);
}

LogicalResult PermuteOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  // C1
  if (failed(onMesh(*this, getAxes().getAxes())) ||
      failed(onMesh(*this, getTo().getAxes())))
    return failure();
  // C2
  MeshOp mesh = findMesh(*this);
  if (!mesh) return success();
  for (MeshAxisAttr axis : mesh.getAxes().getAxes())
    if (partsOf(getAxes().getAxes(), axis) != partsOf(getTo().getAxes(), axis))
      return emitOpError() << "expected the same parts of axes on both sides, "
                              "found "
                           << getAxes() << " and " << getTo();
  return success();
}

LogicalResult ExchangeOp::verify() {
  return checkTypes(*this, {static_cast<int64_t>(getDim())});  // C2
}

LogicalResult ExchangeOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  if (failed(onMesh(*this, getAxes().getAxes()))) return failure();  // C1
  // C3
  const int64_t size = getSize();
  if (size < 0)
    return emitOpError() << "expected a 'size' of at least 0, found " << size;
  return checkCover(*this, getAxes(), getDim(), size,
                    sizesOf(*this, getDim()).first);
}

LogicalResult SendRowsOp::verify() {
  // C2
  if (failed(checkRows(*this, getTo()))) return failure();
  const int64_t rows = typeOf(getInput()).getDimSize(0),
                found = typeOf(getTo()).getDimSize(0);
  if (rows == found) return success();
  return emitOpError() << "expected 'to' with " << rows
                       << " rows, those of the operand, found " << found;
}

LogicalResult SendRowsOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  return onMesh(*this, getAxes().getAxes());  // C1
}

LogicalResult ReturnRowsOp::verify() {
  // C2
  if (failed(checkRows(*this, getTo()))) return failure();
  const int64_t count = typeOf(getTo()).getNumElements(),
                found = typeOf(getResult()).getDimSize(0);
  if (count == found) return success();
  return emitOpError() << "expected " << count
                       << " rows, one per element of 'to', found " << found;
}

LogicalResult ReturnRowsOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  return onMesh(*this, getAxes().getAxes());  // C1
}

LogicalResult BroadcastOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  if (failed(onMesh(*this, getAxes().getAxes()))) return failure();  // C1
  // C2
  const int64_t devices = groupSize(*this, getAxes()), root = getRoot();
  if (root >= 0 && root < devices) return success();
  return emitOpError() << "expected 'root' to be from 0 to " << devices - 1
                       << ", found " << root;
}

LogicalResult CoordinateOp::verifySymbolUses(mlir::SymbolTableCollection&) {
  return onMesh(*this, getAxes().getAxes());  // C1
}

}  // namespace partita::dist

#define GET_OP_CLASSES
#include "dialects/dist/ops.cc.inc"
