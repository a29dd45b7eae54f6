// Registration of the exec dialect and verification of its attributes and of
// operations other than products and convolutions.
#include "dialects/exec/dialect.h"

#include "dialects/exec/attention.h"
#include "dialects/exec/piece_table.h"
#include "dialects/exec/verify.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectImplementation.h"

// clang-format off
#include "dialects/exec/dialect.cc.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/exec/attrs.cc.inc"
#define GET_OP_CLASSES
#include "dialects/exec/ops.cc.inc"
// clang-format on

namespace partita::exec {

using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;

int64_t bufferBytes(RankedTensorType type) {
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

int64_t repeatedFrameBytes(int64_t callee_bytes, mlir::TypeRange results) {
  int64_t bytes = callee_bytes;
  for (mlir::Type type : results)
    bytes += llvm::alignTo(bufferBytes(llvm::cast<RankedTensorType>(type)), 64);
  return bytes;
}

void ExecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/exec/attrs.cc.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/ops.cc.inc"
      >();
}

LogicalResult ExecDialect::verifyOperationAttribute(
    mlir::Operation* op, mlir::NamedAttribute attribute) {
  llvm::StringRef name = attribute.getName();
  if (name == kOffsetsAttr) {
    auto offsets =
        llvm::dyn_cast<mlir::DenseI64ArrayAttr>(attribute.getValue());
    if (!offsets || offsets.size() != op->getNumResults())
      return op->emitOpError()
             << "expected one entry per result in '" << kOffsetsAttr
             << "', found " << attribute.getValue();
    return success();
  }
  if (name == kFrameOffsetAttr || name == kFrameBytesAttr) {
    if (!llvm::isa<mlir::IntegerAttr>(attribute.getValue()))
      return op->emitOpError() << "expected an integer in '" << name
                               << "', found " << attribute.getValue();
    return success();
  }
  if (name == kKernelAttr) return success();
  if (name == kAttentionAttr) return verifyAttention(op, attribute.getValue());
  if (name == kRepeatsAttr) {
    // The callee has the call's types, so this is nn.loop's C1.
    const mlir::TypeRange results = op->getResultTypes();
    if (!llvm::isa<mlir::func::CallOp>(op) || results.empty() ||
        op->getNumOperands() < results.size() ||
        op->getOperands().take_front(results.size()).getTypes() != results ||
        results[0] != mlir::RankedTensorType::get(
                          {}, mlir::IntegerType::get(op->getContext(), 1)))
      return op->emitOpError()
             << "expected '" << name
             << "' on a call whose first operands have the types of its "
                "results, and whose first result is a tensor<i1>";
    return success();
  }
  return op->emitOpError() << "unknown attribute '" << name << "'";
}

LogicalResult LaunchOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<mlir::func::FuncOp>(
      *this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "expected a function named " << getKernelAttr();
  // C1
  if (mlir::TypeRange(kernel.getFunctionType().getInputs()) !=
          mlir::TypeRange(getOperands_().getTypes()) ||
      mlir::TypeRange(kernel.getFunctionType().getResults()) !=
          mlir::TypeRange(getResultTypes()))
    return emitOpError() << "operand and result types differ from those of "
                         << getKernelAttr() << ", " << kernel.getFunctionType();
  return success();
}

LogicalResult LaunchOp::verify() {
  // C3
  if (!getInto().empty()) {
    auto before = getInto().front().getDefiningOp<LaunchOp>();
    if (!before || before->getBlock() != (*this)->getBlock() ||
        getInto() != mlir::ValueRange(before.getResults()) ||
        mlir::TypeRange(getInto().getTypes()) !=
            mlir::TypeRange(getResultTypes()))
      return emitOpError(
          "expected 'into' to be all results of an 'exec.launch' of this "
          "block, of its own results' types");
  }
  if (!getMaps()) return success();
  const auto positive = [](int64_t v) { return v > 0; };
  const int64_t operands = getOperands_().size();
  for (auto map : getMaps()->getAsRange<TensorMapAttr>()) {
    // C2
    if (map.getOperand() < 0 || map.getOperand() >= operands)
      return emitOpError() << "expected a tensor map of one of " << operands
                           << " operands, found " << map;
    llvm::ArrayRef<int64_t> shape = map.getShape(), strides = map.getStrides();
    if (shape.size() < 2 || shape.size() > 5 ||
        strides.size() + 1 != shape.size() ||
        map.getBox().size() != shape.size() || !llvm::all_of(shape, positive) ||
        !llvm::all_of(strides, positive) ||
        !llvm::all_of(map.getBox(), positive))
      return emitOpError()
             << "expected a tensor map of 2 to 5 dimensions, with "
                "positive sizes, strides and boxes, found "
             << map;
    const RankedTensorType type = typeOf((*this)->getOperand(map.getOperand()));
    const int64_t row =
        shape.back() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    const int64_t end =
        map.getOffset() + reach(shape.drop_back(), strides) - 1 + row;
    if (map.getOffset() < 0 || end > bufferBytes(type))
      return emitOpError() << "expected a tensor map inside of its operand, of "
                           << bufferBytes(type) << " bytes, found " << map;
  }
  return success();
}

LogicalResult LaunchPiecesOp::verifySymbolUses(
    mlir::SymbolTableCollection& symbols) {
  llvm::SmallVector<mlir::Type> inputs, results;
  for (auto name : getKernels().getAsRange<mlir::FlatSymbolRefAttr>()) {
    auto kernel =
        symbols.lookupNearestSymbolFrom<mlir::func::FuncOp>(*this, name);
    if (!kernel) return emitOpError() << "expected a function named " << name;
    const mlir::FunctionType type = kernel.getFunctionType();
    // C3
    if (type.getNumInputs() + type.getNumResults() > kMostPieceOperands)
      return emitOpError() << "expected at most " << kMostPieceOperands
                           << " operands and results of " << name << ", found "
                           << type.getNumInputs() + type.getNumResults();
    llvm::append_range(inputs, type.getInputs());
    llvm::append_range(results, type.getResults());
  }
  // C1
  if (mlir::TypeRange(inputs) != mlir::TypeRange(getOperandTypes()) ||
      mlir::TypeRange(results) != mlir::TypeRange(getResultTypes()))
    return emitOpError() << "operand and result types differ from those of "
                         << getKernels();
  return success();
}

LogicalResult LaunchPiecesOp::verify() {
  // C2
  const size_t least = getBlocks() ? 1 : 2;
  if (getKernels().size() < least ||
      getRanges().size() != getKernels().size() ||
      llvm::any_of(getRanges(), [](int64_t range) { return range < 0; }))
    return emitOpError() << "expected at least "
                         << (least == 1 ? "one kernel" : "two kernels")
                         << " with a range each, not negative, found "
                         << getKernels().size() << " kernels and ranges ["
                         << getRanges() << "]";
  if (!getBlocks()) return success();
  // C4
  const int64_t pieces = getKernels().size(),
                buffers = getNumOperands() + getNumResults();
  if (pieces > piecesOfTable(buffers / pieces) || getScratch() != 0 ||
      !getThreads())
    return emitOpError() << "expected threads, no scratch and at most "
                         << piecesOfTable(buffers / pieces) << " pieces of "
                         << buffers / pieces << " buffers on a GPU, found "
                         << pieces << " pieces and " << getScratch()
                         << " bytes of scratch";
  return success();
}

namespace {

mlir::FunctionType typeOfPiece(LaunchPiecesOp op, unsigned piece) {
  auto name = llvm::cast<mlir::FlatSymbolRefAttr>(op.getKernels()[piece]);
  return mlir::SymbolTable::lookupNearestSymbolFrom<mlir::func::FuncOp>(op,
                                                                        name)
      .getFunctionType();
}

}  // namespace

unsigned LaunchPiecesOp::getPieceOf(mlir::OpResult result) {
  unsigned piece = 0, end = 0;
  while ((end += typeOfPiece(*this, piece).getNumResults()) <=
         result.getResultNumber())
    ++piece;
  return piece;
}

mlir::OperandRange LaunchPiecesOp::getOperandsOf(unsigned piece) {
  unsigned first = 0;
  for (unsigned i = 0; i < piece; ++i)
    first += typeOfPiece(*this, i).getNumInputs();
  return getOperands_().slice(first, typeOfPiece(*this, piece).getNumInputs());
}

LogicalResult ViewOp::verify() {
  // C1
  if (typeOf(getInput()).getNumElements() !=
          typeOf(getResult()).getNumElements() ||
      typeOf(getInput()).getElementType() !=
          typeOf(getResult()).getElementType())
    return emitOpError(
        "expected the same number and type of elements on both sides");
  return success();
}

namespace {

// Number of devices along parts of axes, given as triples.
int64_t sizeOf(llvm::ArrayRef<int64_t> axes) {
  int64_t size = 1;
  for (size_t i = 2; i < axes.size(); i += 3) size *= axes[i];
  return size;
}

}  // namespace

int64_t CollectiveOp::getGroupSize() { return sizeOf(getAxes()); }

namespace {

bool areTriples(llvm::ArrayRef<int64_t> axes) {
  if (axes.size() % 3 != 0) return false;
  for (; !axes.empty(); axes = axes.drop_front(3))
    if (axes[0] < 0 || axes[1] < 1 || axes[2] < 1) return false;
  return true;
}

// S rows fit into n blocks of b rows.
LogicalResult checkCover(CollectiveOp op, int64_t size, int64_t block) {
  if (size >= 0 && size <= op.getGroupSize() * block) return success();
  return op.emitOpError() << "expected at most " << op.getGroupSize()
                          << " blocks of " << block << " rows, found " << size;
}

// C6
LogicalResult verifyRows(CollectiveOp op) {
  const RankedTensorType in = typeOf(op.getInput()), to = typeOf(op.getTo()),
                         out = typeOf(op.getResult());
  const int64_t count = to.getNumElements(), size = op.getSize();
  if (in.getRank() != 2 || to.getRank() != 2 ||
      !to.getElementType().isInteger(64) || op.getDim() != 0)
    return op.emitOpError(
        "expected tensors with two dimensions, 'to' of i64, and 'dim' 0");
  const bool sends = op.getKind() == CollectiveKind::kSendRows;
  if (size != count || (sends ? in.getDimSize(0) != to.getDimSize(0)
                              : out.getDimSize(0) != count))
    return op.emitOpError()
           << "expected 'size' to be the " << count
           << " numbers of 'to', and one row of the "
           << (sends ? "input for each row of 'to'"
                     : "result for each number of 'to'")
           << ", found " << size << ", " << in << " and " << out;
  return success();
}

}  // namespace

LogicalResult CollectiveOp::verify() {
  const CollectiveKind kind = getKind();
  // C1
  if (!areTriples(getAxes()) || !areTriples(getSourceAxes()))
    return emitOpError(
        "expected axes as triples of an axis and two positive numbers");
  const int64_t sources = sizeOf(getSourceAxes());
  if (sources != (kind == CollectiveKind::kPermute ? getGroupSize() : 1))
    return emitOpError() << "expected 'source_axes' in a permutation only, of "
                         << getGroupSize() << " devices, found " << sources;
  const RankedTensorType in = typeOf(getInput()), out = typeOf(getResult());
  const int64_t rank = in.getRank(), dim = getDim(), other = getOtherDim();
  const bool has_dim = kind != CollectiveKind::kAllReduce &&
                       kind != CollectiveKind::kPermute &&
                       kind != CollectiveKind::kBroadcast;
  const bool has_other = kind == CollectiveKind::kAllToAll;
  // C2
  if (has_dim ? dim < 0 || dim >= rank : dim != -1)
    return emitOpError() << "expected 'dim' to be a dimension, or -1 where the "
                            "kind has none, found "
                         << dim;
  if (has_other ? other < 0 || other >= rank || other == dim : other != -1)
    return emitOpError() << "expected 'other_dim' to be another dimension, or "
                            "-1 where the kind has none, found "
                         << other;
  // C3
  llvm::SmallVector<int64_t> shape(in.getShape());
  if (out.getRank() == rank && has_dim) shape[dim] = out.getDimSize(dim);
  if (out.getRank() == rank && has_other) shape[other] = out.getDimSize(other);
  if (out != in.clone(shape))
    return emitOpError() << "expected types that differ in the sizes of 'dim' "
                            "and 'other_dim' only, found "
                         << in << " and " << out;
  // C5
  if (static_cast<int64_t>(getToken()) < 0)
    return emitOpError() << "expected a 'token' that is not negative, found "
                         << static_cast<int64_t>(getToken());
  if (getToken() > 0 && (!getResult().hasOneUse() ||
                         !llvm::isa<AwaitOp>(*getResult().user_begin())))
    return emitOpError(
        "expected one 'exec.await' and no other use of what is "
        "started");
  // C6
  const bool moves_rows =
      kind == CollectiveKind::kSendRows || kind == CollectiveKind::kReturnRows;
  if (moves_rows != static_cast<bool>(getTo()))
    return emitOpError("expected 'to' in 'send_rows' and 'return_rows' only");
  if (moves_rows) return verifyRows(*this);
  // C4
  if (kind == CollectiveKind::kAllGather)
    return checkCover(*this, out.getDimSize(dim), in.getDimSize(dim));
  if (kind == CollectiveKind::kExchange)
    return checkCover(*this, getSize(), in.getDimSize(dim));
  if (has_other && mlir::failed(checkCover(*this, out.getDimSize(other),
                                           in.getDimSize(other))))
    return failure();
  return has_dim ? checkCover(*this, in.getDimSize(dim), out.getDimSize(dim))
                 : success();
}

LogicalResult AwaitOp::verify() {
  // C1
  auto collective = getStarted().getDefiningOp<CollectiveOp>();
  if (!collective || collective->getBlock() != (*this)->getBlock())
    return emitOpError(
        "expected the result of an 'exec.collective' in the same block");
  const int64_t token = getToken(), found = collective.getToken();
  if (token < 1 || token != found)
    return emitOpError() << "expected the positive token of the collective, "
                         << found << ", found " << token;
  if (collective.getInput() != getInput() || collective.getTo() != getTo())
    return (emitOpError("expected the operands of the collective")
                .attachNote(collective.getLoc())
            << "which starts here");
  return success();
}

namespace {

template <typename Op>
LogicalResult verifyTransfer(Op op) {
  // C1
  if (!areTriples(op.getAxes()))
    return op.emitOpError(
        "expected axes as triples of an axis and two positive numbers");
  // C2
  const int64_t peer = op.getPeer(), size = sizeOf(op.getAxes());
  if (peer >= 0 && peer < size) return success();
  return op.emitOpError() << "expected a 'peer' from 0 to " << size - 1
                          << ", found " << peer;
}

}  // namespace

LogicalResult SendOp::verify() { return verifyTransfer(*this); }
LogicalResult ReceiveOp::verify() { return verifyTransfer(*this); }

}  // namespace partita::exec
