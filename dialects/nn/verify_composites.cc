// Verifiers of the composites and of the dialect's attributes on arguments and
// results.
#include "dialects/nn/dialect.h"
#include "dialects/nn/verify.h"
#include "dialects/nn/weight_mark.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace partita::nn {

using mlir::ArrayRef;
using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::success;

LogicalResult RandomOp::verify() {
  // C1
  const auto i64 = mlir::IntegerType::get(getContext(), 64);
  if (failed(checkType(*this, "a seed", RankedTensorType::get({}, i64),
                       getSeed().getType())))
    return failure();
  const auto f32 = mlir::Float32Type::get(getContext());
  return checkType(*this, "a result", getType().clone(f32), getType());
}

LogicalResult SoftmaxOp::verify() {
  const RankedTensorType input = getInput().getType();
  if (failed(checkDim(*this, "axis", getAxis(), input.getRank())))
    return failure();                                     // C1
  return checkType(*this, "a result", input, getType());  // C2
}

// Constraints C1 and C2 of nn.layer_norm and nn.rms_norm.
static LogicalResult checkNorm(
    mlir::Operation* op, RankedTensorType input, int64_t axis,
    RankedTensorType result,
    ArrayRef<std::pair<llvm::StringRef, mlir::Value>> vectors) {
  // C1
  if (failed(checkDim(op, "axis", axis, input.getRank()))) return failure();
  if (failed(checkType(op, "a result", input, result))) return failure();
  // C2
  for (auto [name, value] : vectors) {
    if (value && failed(checkType(
                     op, name, input.clone(input.getShape().drop_front(axis)),
                     value.getType())))
      return failure();
  }
  return success();
}

LogicalResult LayerNormOp::verify() {
  return checkNorm(*this, getInput().getType(), getAxis(), getType(),
                   {{"scale", getScale()}, {"bias", getBias()}});
}

LogicalResult RmsNormOp::verify() {
  return checkNorm(*this, getInput().getType(), getAxis(), getType(),
                   {{"scale", getScale()}});
}

LogicalResult BatchNormOp::verify() {
  const RankedTensorType input = getInput().getType();
  // C1
  const int64_t feature = getFeature();
  if (failed(checkDim(*this, "feature", feature, input.getRank())))
    return failure();
  const RankedTensorType vector =
      input.clone(ArrayRef<int64_t>{input.getDimSize(feature)});
  const std::pair<llvm::StringRef, mlir::Value> vectors[] = {
      {"scale", getScale()},
      {"bias", getBias()},
      {"mean", getMean()},
      {"variance", getVariance()}};
  for (auto [name, value] : vectors) {
    if (failed(checkType(*this, name, vector, value.getType())))
      return failure();
  }
  // C2
  if (failed(checkType(*this, "a result", input, getResult().getType())))
    return failure();
  const size_t more = getTraining() ? 2 : 0;
  if (getNewStatistics().size() != more) {
    return emitOpError() << "expected " << more
                         << " running statistics as results "
                         << (getTraining() ? "with" : "without")
                         << " 'training', found " << getNewStatistics().size();
  }
  for (mlir::Value statistic : getNewStatistics()) {
    if (failed(checkType(*this, "a running statistic", vector,
                         statistic.getType())))
      return failure();
  }
  return success();
}

// Checks the blocks of nn.attention or its gradient.
template <typename Op>
static LogicalResult checkBlocks(Op op, int64_t heads, int64_t queries,
                                 int64_t keys) {
  // C7
  const std::optional<int64_t> size = op.getBlockSize();
  if (op.getBlocks().has_value() != size.has_value())
    return op.emitOpError() << "expected both 'blocks' and 'block_size', found "
                            << (size ? "'block_size'" : "'blocks'") << " only";
  if (op.getFirstHead() && !size)
    return op.emitOpError()
           << "expected 'blocks', which 'first_head' requires, found none";
  if (!size) return success();
  if (*size < 1)
    return op.emitOpError()
           << "expected 'block_size' of at least 1, found " << *size;
  if (op.getFirstHead() &&
      failed(checkType(op, "first_head",
                       RankedTensorType::get(
                           {}, mlir::IntegerType::get(op.getContext(), 64)),
                       op.getFirstHead().getType())))
    return failure();
  const auto type = mlir::dyn_cast<RankedTensorType>(op.getBlocks()->getType());
  const int64_t rows = llvm::divideCeil(queries, *size),
                columns = llvm::divideCeil(keys, *size);
  const bool fits =
      type && type.getRank() == 3 && type.getDimSize(2) == columns &&
      (op.getShift() ? type.getDimSize(1) >= 1 : type.getDimSize(1) == rows) &&
      (op.getFirstHead()
           ? type.getDimSize(0) >= heads
           : type.getDimSize(0) == heads || type.getDimSize(0) == 1);
  if (fits) return success();
  return op.emitOpError() << "expected 'blocks' of [" << heads << " or 1, "
                          << rows << ", " << columns << "] for " << queries
                          << " queries and " << keys << " keys in blocks of "
                          << *size << ", found " << op.getBlocks()->getType();
}

// Checks the masks of nn.attention or its gradient.
template <typename Op>
static LogicalResult checkMasks(Op op, int64_t batch, int64_t heads,
                                int64_t queries, int64_t keys) {
  // C3
  const std::optional<int64_t> window = op.getWindow();
  if (window && *window < 1)
    return op.emitOpError()
           << "expected 'window' of at least 1, found " << *window;
  if ((window || (op.getShift() && !op.getBlocks())) && !op.getCausalOffset()) {
    return op.emitOpError()
           << "expected 'causal_offset', which "
           << (window ? "'window'" : "'shift'") << " requires, found none";
  }
  if (op.getShift() &&
      failed(checkType(op, "shift",
                       RankedTensorType::get(
                           {}, mlir::IntegerType::get(op.getContext(), 64)),
                       op.getShift().getType())))
    return failure();
  // C4
  if (!op.getQSegments() != !op.getKSegments()) {
    return op.emitOpError()
           << "expected segments of both queries and keys, found those of "
           << (op.getQSegments() ? "queries" : "keys") << " only";
  }
  if (op.getQSegments()) {
    const RankedTensorType of_q = op.getQSegments().getType(),
                           of_k = op.getKSegments().getType();
    if (failed(
            checkShape(op, "q_segments", {batch, queries}, of_q.getShape())) ||
        failed(checkShape(op, "k_segments", {batch, keys}, of_k.getShape())) ||
        failed(checkElementTypes(op, {of_q, of_k})))
      return failure();
  }
  // C6
  if (const std::optional<int64_t> sinks = op.getSinks()) {
    if (*sinks < 1)
      return op.emitOpError()
             << "expected 'sinks' of at least 1, found " << *sinks;
    if (!window)
      return op.emitOpError()
             << "expected 'window', which 'sinks' requires, found none";
  }
  return checkBlocks(op, heads, queries, keys);
}

// Checks the shapes of nn.attention or its gradient. `result` is the
// attention's result, called `name` in messages.
template <typename Op>
static LogicalResult checkAttention(Op op, llvm::StringRef name,
                                    RankedTensorType result) {
  const RankedTensorType q = op.getQ().getType(), k = op.getK().getType(),
                         v = op.getV().getType();
  // C1
  if (q.getRank() != 4 || k.getRank() != 4 || v.getRank() != 4) {
    return op.emitOpError()
           << "expected q, k and v of rank 4, found " << q.getRank() << ", "
           << k.getRank() << " and " << v.getRank();
  }
  if (failed(checkElementTypes(op, {q, k, v, result}))) return failure();
  const int64_t heads = q.getDimSize(1), groups = k.getDimSize(1);
  if (groups == 0 || heads % groups != 0) {
    return op.emitOpError() << "expected the key-value heads to divide the "
                            << heads << " query heads, found " << groups;
  }
  if (failed(checkShape(
          op, "k", {q.getDimSize(0), groups, k.getDimSize(2), q.getDimSize(3)},
          k.getShape())))
    return failure();
  if (failed(checkShape(
          op, "v", {q.getDimSize(0), groups, k.getDimSize(2), v.getDimSize(3)},
          v.getShape())))
    return failure();
  if (failed(checkShape(
          op, name, {q.getDimSize(0), heads, q.getDimSize(2), v.getDimSize(3)},
          result.getShape())))
    return failure();
  // C2
  if (op.getBias()) {
    const RankedTensorType bias = op.getBias().getType();
    if (failed(checkElementTypes(op, {q, bias}))) return failure();
    const int64_t scores[] = {q.getDimSize(0), heads, q.getDimSize(2),
                              k.getDimSize(2)};
    const bool fits =
        bias.getRank() == 4 &&
        llvm::all_of(llvm::zip(bias.getShape(), scores), [](auto pair) {
          return std::get<0>(pair) == 1 ||
                 std::get<0>(pair) == std::get<1>(pair);
        });
    if (!fits) {
      return op.emitOpError()
             << "expected a bias whose sizes are 1 or those of "
             << listToString(scores) << ", found "
             << listToString(bias.getShape());
    }
  }
  if (failed(checkMasks(op, q.getDimSize(0), heads, q.getDimSize(2),
                        k.getDimSize(2))))
    return failure();
  // C5
  if (!op.getLse()) return success();
  return checkType(
      op, "lse",
      RankedTensorType::get({q.getDimSize(0), heads, q.getDimSize(2)},
                            mlir::Float32Type::get(op.getContext())),
      op.getLse().getType());
}

LogicalResult AttentionOp::verify() {
  return checkAttention(*this, "a result", getResult().getType());
}

LogicalResult AttentionGradOp::verify() {
  const RankedTensorType result = getResult().getType();
  if (failed(checkAttention(*this, "a result", result))) return failure();
  if (failed(
          checkType(*this, "a result_grad", result, getResultGrad().getType())))
    return failure();
  // C8
  if (failed(
          checkType(*this, "q_grad", getQ().getType(), getQGrad().getType())) ||
      failed(
          checkType(*this, "k_grad", getK().getType(), getKGrad().getType())) ||
      failed(
          checkType(*this, "v_grad", getV().getType(), getVGrad().getType())))
    return failure();
  if (!getBiasGrad()) return success();
  if (!getBias())
    return emitOpError() << "expected three results, as there is no bias, "
                            "found four";
  return checkType(*this, "bias_grad", getBias().getType(),
                   getBiasGrad().getType());
}

LogicalResult CrossEntropyOp::verify() {
  // C1
  const RankedTensorType logits = getLogits().getType();
  if (logits.getRank() == 0)
    return emitOpError() << "expected logits of rank 1 or more, found 0";
  const ArrayRef<int64_t> positions = logits.getShape().drop_back();
  if (failed(checkShape(*this, "targets", positions,
                        getTargets().getType().getShape())))
    return failure();
  const auto f32 = mlir::Float32Type::get(getContext());
  if (failed(checkType(*this, "a result", RankedTensorType::get(positions, f32),
                       getType())))
    return failure();
  // C2
  const double smoothing = getLabelSmoothing().convertToDouble();
  if (smoothing >= 0 && smoothing <= 1) return success();
  return emitOpError() << "expected 'label_smoothing' from 0 to 1, found "
                       << smoothing;
}

LogicalResult DequantizeOp::verify() {
  // C1
  const RankedTensorType packed = getPacked().getType();
  if (packed.getRank() == 0)
    return emitOpError() << "expected packed of rank 1 or more, found 0";
  const ArrayRef<int64_t> groups = packed.getShape().drop_back();
  llvm::SmallVector<int64_t> unpacked(packed.getShape());
  unpacked.back() *= 2;
  if (failed(checkShape(*this, "scale", groups,
                        getScale().getType().getShape())) ||
      failed(checkShape(*this, "a result", unpacked, getType().getShape())))
    return failure();
  if (getZero() &&
      failed(checkShape(*this, "zero", groups, getZero().getType().getShape())))
    return failure();
  // C2
  if (!packed.getElementType().isInteger(8))
    return emitOpError() << "expected packed of i8, found " << packed;
  if (getZero() && !getZero().getType().getElementType().isInteger(8))
    return emitOpError() << "expected zero of i8, found "
                         << getZero().getType();
  return checkElementTypes(*this, {getScale().getType(), getType()});
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult InitAttr::verify(
    llvm::function_ref<mlir::InFlightDiagnostic()> emit_error,
    llvm::StringRef kind, mlir::FloatAttr scale, uint64_t seed) {
  if (!llvm::is_contained({"zeros", "ones", "normal", "uniform"}, kind)) {
    return emit_error()
           << "expected kind 'zeros', 'ones', 'normal' or 'uniform', found '"
           << kind << "'";
  }
  if (!scale.getType().isF64() || !scale.getValue().isFinite() ||
      scale.getValueAsDouble() < 0) {
    return emit_error()
           << "expected a finite scale of type f64, 0 or more, found " << scale;
  }
  return success();
}

// Checks nn.name and nn.unsigned on an argument or a result. `type` is the
// value's type.
static LogicalResult checkNameOrUnsigned(mlir::Operation* op,
                                         mlir::NamedAttribute attribute,
                                         mlir::Type type) {
  if (attribute.getName() == kNameAttr) {
    if (mlir::isa<mlir::StringAttr>(attribute.getValue())) return success();
    return op->emitOpError()
           << "expected '" << kNameAttr << "' to be a string, found "
           << attribute.getValue();
  }
  if (attribute.getName() == kUnsignedAttr) {
    const bool is_integer =
        type && mlir::getElementTypeOrSelf(type).isSignlessInteger();
    if (mlir::isa<mlir::UnitAttr>(attribute.getValue()) && is_integer)
      return success();
    return op->emitOpError()
           << "expected '" << kUnsignedAttr
           << "' to be a unit attribute of a signless integer, found "
           << attribute.getValue() << " on " << type;
  }
  return op->emitOpError() << "expected an attribute of the nn dialect that is "
                              "defined here, found '"
                           << attribute.getName().getValue() << "'";
}

// Checks nn.dims, the names of an argument's dimensions.
static LogicalResult checkDims(mlir::Operation* op, mlir::Attribute value,
                               mlir::Type type) {
  const auto names = mlir::dyn_cast<mlir::ArrayAttr>(value);
  const auto tensor = mlir::dyn_cast_or_null<RankedTensorType>(type);
  if (names && tensor &&
      static_cast<int64_t>(names.size()) == tensor.getRank() &&
      llvm::all_of(names, llvm::IsaPred<mlir::StringAttr>))
    return success();
  return op->emitOpError()
         << "expected 'nn.dims' to be a string for each dimension of " << type
         << ", found " << value;
}

// Checks nn.view_of, the tensor type in the user's model. It has the elements
// of the undivided argument.
static LogicalResult checkViewOf(mlir::Operation* op, mlir::Attribute value) {
  const auto attr = mlir::dyn_cast<mlir::TypeAttr>(value);
  const auto original =
      attr ? mlir::dyn_cast<RankedTensorType>(attr.getValue()) : nullptr;
  if (original && original.hasStaticShape()) return success();
  return op->emitOpError()
         << "expected 'nn.view_of' to be a tensor type of static shape, found "
         << value;
}

LogicalResult NNDialect::verifyRegionArgAttribute(
    mlir::Operation* op, unsigned, unsigned index,
    mlir::NamedAttribute attribute) {
  const mlir::Attribute value = attribute.getValue();
  if (attribute.getName() == kKindAttr) {
    const auto kind = mlir::dyn_cast<mlir::StringAttr>(value);
    if (kind && llvm::is_contained({"input", "parameter", "buffer", "constant",
                                    "state", "derived", "coordinate"},
                                   kind.getValue()))
      return success();
    return op->emitOpError() << "expected '" << kKindAttr
                             << "' to be \"input\", \"parameter\", \"buffer\", "
                                "\"constant\", \"state\", \"derived\" or "
                                "\"coordinate\", found "
                             << value;
  }
  if (attribute.getName() == kRoleAttr) {
    const auto role = mlir::dyn_cast<mlir::StringAttr>(value);
    if (role &&
        llvm::is_contained({"learning_rate", "step", "seed"}, role.getValue()))
      return success();
    return op->emitOpError()
           << "expected '" << kRoleAttr
           << "' to be \"learning_rate\", \"step\" or \"seed\", found "
           << value;
  }
  if (attribute.getName() == kAxesAttr) {
    const auto axes = mlir::dyn_cast<mlir::DenseI64ArrayAttr>(value);
    if (axes && axes.size() % 3 == 0) return success();
    return op->emitOpError()
           << "expected '" << kAxesAttr
           << "' to be an array of triples of integers, found " << value;
  }
  if (attribute.getName() == kSourceAttr) {
    const auto parts = mlir::dyn_cast<mlir::ArrayAttr>(value);
    if (mlir::isa<FileAttr, InitAttr>(value) ||
        (parts && llvm::all_of(parts, llvm::IsaPred<FileAttr>)))
      return success();
    return op->emitOpError()
           << "expected '" << kSourceAttr
           << "' to be #nn.file, #nn.init or a list of #nn.file, found "
           << value;
  }
  auto function = mlir::dyn_cast<mlir::FunctionOpInterface>(op);
  const mlir::Type type =
      function ? function.getArgumentTypes()[index] : mlir::Type();
  if (attribute.getName() == "nn.dims") return checkDims(op, value, type);
  if (attribute.getName() == kPartsAttr) {
    const auto tensor = mlir::dyn_cast_or_null<RankedTensorType>(type);
    if (mlir::isa<mlir::UnitAttr>(value) && tensor && tensor.getRank() > 0)
      return success();
    return op->emitOpError() << "expected '" << kPartsAttr
                             << "' to be a unit attribute of a tensor with "
                                "dimensions, found "
                             << value << " on " << type;
  }
  if (attribute.getName() == kViewOfAttr) return checkViewOf(op, value);
  if (attribute.getName() == kWeightAttr) {
    if (mlir::isa<mlir::UnitAttr>(value)) return success();
    return op->emitOpError() << "expected '" << kWeightAttr
                             << "' to be a unit attribute, found " << value;
  }
  return checkNameOrUnsigned(op, attribute, type);
}

LogicalResult NNDialect::verifyRegionResultAttribute(
    mlir::Operation* op, unsigned, unsigned index,
    mlir::NamedAttribute attribute) {
  if (attribute.getName() == kUpdatesAttr) {
    if (mlir::isa<mlir::StringAttr>(attribute.getValue())) return success();
    return op->emitOpError()
           << "expected '" << kUpdatesAttr
           << "' to be the name of an argument, found " << attribute.getValue();
  }
  auto function = mlir::dyn_cast<mlir::FunctionOpInterface>(op);
  return checkNameOrUnsigned(
      op, attribute,
      function ? function.getResultTypes()[index] : mlir::Type());
}

}  // namespace partita::nn
