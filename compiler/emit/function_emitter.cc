// Turns each exec operation into an instruction. Buffers come from the offsets
// that compiler/memory wrote.
#include "compiler/emit/function_emitter.h"

#include <numeric>

#include "compiler/emit/placement.h"
#include "compiler/format/format.h"
#include "dialects/exec/attention.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/labels.h"
#include "dialects/exec/piece_table.h"
#include "dialects/nn/tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "runtime/program/piece_table.h"
#include "runtime/program/validate.h"

namespace partita::emit {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;
using program::Buffer;
using program::Space;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

std::vector<int64_t> vectorOf(llvm::ArrayRef<int64_t> values) {
  return {values.begin(), values.end()};
}

std::string describe(mlir::Operation& op) {
  if (auto name = op.getLoc()->findInstanceOf<mlir::NameLoc>())
    return name.getName().str();
  return op.getName().getStringRef().str();
}

class FunctionEmitter {
 public:
  FunctionEmitter(FuncOp function, const llvm::StringMap<int>& functions,
                  const llvm::StringMap<int>& kernels,
                  program::DataSection& data)
      : function_(function),
        functions_(functions),
        kernels_(kernels),
        data_(data) {}

  FailureOr<std::unique_ptr<program::FunctionT>> run() {
    auto result = std::make_unique<program::FunctionT>();
    result->name = function_.getName().str();
    result->arguments = function_.getNumArguments() + function_.getNumResults();
    result->results = function_.getNumResults();
    result->frame_bytes =
        function_->getAttrOfType<mlir::IntegerAttr>(exec::kFrameBytesAttr)
            .getInt();
    for (auto [index, argument] : llvm::enumerate(function_.getArguments()))
      place(argument, Space::argument, index);
    for (mlir::Operation& op : function_.front().without_terminator())
      if (mlir::failed(emit(op, *result))) return failure();
    if (mlir::failed(checkReturned())) return failure();
    return result;
  }

 private:
  void place(Value value, Space space, int64_t where) {
    buffers_[value] = Buffer(space, where, exec::bufferBytes(typeOf(value)));
  }

  LogicalResult emit(mlir::Operation& op, program::FunctionT& function) {
    if (auto constant = llvm::dyn_cast<mlir::arith::ConstantOp>(op))
      return placeConstant(constant);
    if (auto view = llvm::dyn_cast<exec::ViewOp>(op)) {
      // Copy the buffer, since an insertion into the map invalidates
      // references.
      const Buffer viewed = buffers_.lookup(view.getInput());
      buffers_[view.getResult()] = viewed;
      return success();
    }
    auto instruction = std::make_unique<program::InstructionT>();
    if (mlir::failed(fillOperation(op, instruction->operation)))
      return failure();
    instruction->name = describe(op);
    if (auto why = op.getAttrOfType<mlir::StringAttr>("why"))
      instruction->why = why.getValue().str();
    if (auto layer = op.getAttrOfType<mlir::StringAttr>(exec::kLayerAttr))
      instruction->layer = layer.getValue().str();
    if (auto await = llvm::dyn_cast<exec::AwaitOp>(op)) {
      const Buffer started = buffers_.lookup(await.getStarted());
      buffers_[await.getResult()] = started;
    } else {
      if (mlir::failed(placeResults(op))) return failure();
      addOperands(op, *instruction);
    }
    function.body.push_back(std::move(instruction));
    return success();
  }

  LogicalResult placeResults(mlir::Operation& op) {
    if (auto launch = llvm::dyn_cast<exec::LaunchOp>(op);
        launch && !launch.getInto().empty()) {
      for (auto [result, begun] :
           llvm::zip_equal(launch.getResults(), launch.getInto())) {
        const Buffer buffer = buffers_.lookup(begun);
        buffers_[result] = buffer;
      }
      return success();
    }
    auto offsets =
        op.getAttrOfType<mlir::DenseI64ArrayAttr>(exec::kOffsetsAttr);
    if (!offsets && op.getNumResults() > 0)
      return op.emitOpError("expected memory to be planned, found no ")
             << exec::kOffsetsAttr;
    for (mlir::OpResult result : op.getResults()) {
      const int64_t offset = offsets[result.getResultNumber()];
      if (offset < 0)
        place(result, Space::argument,
              function_.getNumArguments() + (-1 - offset));
      else
        place(result, Space::frame, offset);
    }
    return success();
  }

  void addOperands(mlir::Operation& op, program::InstructionT& instruction) {
    auto launch = llvm::dyn_cast<exec::LaunchOp>(op);
    for (Value operand : launch ? launch.getOperands_() : op.getOperands())
      instruction.operands.push_back(buffers_[operand]);
    for (Value result : op.getResults()) {
      instruction.operands.push_back(buffers_[result]);
      if (!llvm::isa<mlir::func::CallOp>(op))
        instruction.output_types.push_back(tensorType(typeOf(result), false));
    }
    instruction.outputs = op.getNumResults();
  }

  LogicalResult placeConstant(mlir::arith::ConstantOp constant) {
    auto value = llvm::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
    if (!value)
      return constant.emitOpError("expected a dense constant, found ")
             << constant.getValue();
    auto [known, is_new] = constants_.try_emplace(value, 0);
    if (is_new) {
      std::vector<char> bytes = nn::Tensor::fromAttr(value).toBytes();
      known->second = data_.Add(std::string(bytes.begin(), bytes.end()));
    }
    place(constant.getResult(), Space::constant, known->second);
    return success();
  }

  LogicalResult fillOperation(mlir::Operation& op,
                              program::OperationUnion& operation) {
    return llvm::TypeSwitch<mlir::Operation*, LogicalResult>(&op)
        .Case<exec::LaunchOp>(
            [&](auto launch) { return fillLaunch(launch, operation); })
        .Case<exec::LaunchPiecesOp>([&](auto launch) {
          fillPieces(launch, operation);
          return success();
        })
        .Case<exec::CopyOp>([&](auto) {
          operation.Set(program::CopyT());
          return success();
        })
        .Case<exec::GemmOp>(
            [&](auto gemm) { return fillGemm(gemm, operation); })
        .Case<exec::GroupedGemmOp>([&](auto gemm) {
          fillGroupedGemm(gemm, operation);
          return success();
        })
        .Case<exec::ConvOp>(
            [&](auto conv) { return fillConv(conv, operation); })
        .Case<exec::CollectiveOp>([&](auto collective) {
          fillCollective(collective, operation);
          return success();
        })
        .Case<exec::AwaitOp>([&](auto await) {
          program::AwaitT result;
          result.token = await.getToken();
          operation.Set(std::move(result));
          return success();
        })
        .Case<exec::SendOp>([&](auto send) {
          fillTransfer<program::SendT>(send, send.getInput(), operation);
          return success();
        })
        .Case<exec::ReceiveOp>([&](auto receive) {
          fillTransfer<program::ReceiveT>(receive, receive.getResult(),
                                          operation);
          return success();
        })
        .Case<mlir::func::CallOp>([&](auto call) {
          program::CallT result;
          result.function = functions_.lookup(call.getCallee());
          result.frame_offset = call->template getAttrOfType<mlir::IntegerAttr>(
                                        exec::kFrameOffsetAttr)
                                    .getInt();
          result.repeats = call->hasAttr(exec::kRepeatsAttr);
          operation.Set(std::move(result));
          return success();
        })
        .Default([](mlir::Operation* other) {
          return other->emitOpError(
              "has no counterpart in a program: expected exec operations, "
              "calls and constants");
        });
  }

  void fillCollective(exec::CollectiveOp collective,
                      program::OperationUnion& operation) {
    program::CollectiveT result;
    result.kind = format::ToFormat(collective.getKind());
    result.reduction = format::ToFormat(collective.getReduction());
    result.axes = axisParts(collective.getAxes());
    result.source_axes = axisParts(collective.getSourceAxes());
    const RankedTensorType input = typeOf(collective.getInput());
    result.dtype = dtypeOf(input.getElementType(), false);
    result.input_shape = vectorOf(input.getShape());
    result.output_shape = vectorOf(typeOf(collective.getResult()).getShape());
    result.dim = collective.getDim();
    result.other_dim = collective.getOtherDim();
    result.size = collective.getSize();
    result.step = collective.getStep();
    result.offset = collective.getOffset();
    result.fill = collective.getFill().convertToDouble();
    result.root = collective.getRoot();
    result.token = collective.getToken();
    operation.Set(std::move(result));
  }

  template <typename Transfer, typename Op>
  static void fillTransfer(Op op, Value value,
                           program::OperationUnion& operation) {
    Transfer result;
    result.axes = axisParts(op.getAxes());
    result.peer = op.getPeer();
    result.dtype = dtypeOf(typeOf(value).getElementType(), false);
    result.shape = vectorOf(typeOf(value).getShape());
    operation.Set(std::move(result));
  }

  LogicalResult fillLaunch(exec::LaunchOp launch,
                           program::OperationUnion& operation) {
    if (!launch.getScratch())
      return launch.emitOpError(
          "expected code to be generated, found no scratch");
    program::LaunchT result;
    result.kernel = kernels_.lookup(launch.getKernel());
    result.scratch_bytes = *launch.getScratch();
    result.operations = launch.getOperations().value_or(0);
    result.unread_bytes = launch.getUnread().value_or(0);
    if (auto blocks = launch.getBlocks()) {
      result.grid = {static_cast<int32_t>(*blocks), 1, 1};
      result.block = {static_cast<int32_t>(*launch.getThreads()), 1, 1};
      result.shared_bytes =
          static_cast<int32_t>(launch.getShared().value_or(0));
      result.maps = mapsOf(launch);
      result.attention = attentionOf(launch);
    } else {
      result.range = *launch.getRange();
      result.grain = *launch.getGrain();
    }
    operation.Set(std::move(result));
    return success();
  }

  // Null: a library may not replace the kernel.
  static std::unique_ptr<program::AttentionT> attentionOf(
      exec::LaunchOp launch) {
    const std::optional<exec::Attention> attention = exec::attentionOf(launch);
    if (!attention) return nullptr;
    const auto tensor = [](const exec::Attention::Tensor& from) {
      return std::make_unique<program::AttentionTensor>(
          static_cast<int32_t>(from.operand), from.offset, from.batch,
          from.head, from.position);
    };
    auto result = std::make_unique<program::AttentionT>();
    const Value q =
        launch->getOperand(static_cast<unsigned>(attention->q.operand));
    result->dtype = dtypeOf(typeOf(q).getElementType(), false);
    result->batch = attention->batch;
    result->heads = attention->heads;
    result->groups = attention->groups;
    result->queries = attention->queries;
    result->keys = attention->keys;
    result->size = attention->size;
    result->value_size = attention->value_size;
    result->scale = attention->scale;
    result->causal = attention->causal;
    result->causal_offset = attention->causal_offset;
    result->q = tensor(attention->q);
    result->k = tensor(attention->k);
    result->v = tensor(attention->v);
    result->out = tensor(attention->out);
    result->lse = static_cast<int32_t>(attention->lse);
    return result;
  }

  void fillPieces(exec::LaunchPiecesOp launch,
                  program::OperationUnion& operation) {
    static_assert(exec::kMostPieceOperands == program::kMaxPieceOperands &&
                      exec::kPieceTableBytes == program::kPieceTableBytes,
                  "exec and program.fbs must agree");
    program::LaunchT result;
    // All kernels have the same code.
    result.kernel = kernels_.lookup(
        llvm::cast<mlir::FlatSymbolRefAttr>(launch.getKernels()[0]).getValue());
    result.ranges = vectorOf(launch.getRanges());
    result.range =
        std::accumulate(result.ranges.begin(), result.ranges.end(), int64_t{0});
    result.grain = launch.getGrain();
    result.scratch_bytes = launch.getScratch();
    if (auto blocks = launch.getBlocks()) {
      result.grid = {static_cast<int32_t>(*blocks), 1, 1};
      result.block = {static_cast<int32_t>(*launch.getThreads()), 1, 1};
    }
    result.operations = launch.getOperations().value_or(0);
    result.unread_bytes = launch.getUnread().value_or(0);
    operation.Set(std::move(result));
  }

  static std::vector<std::unique_ptr<program::TensorMapT>> mapsOf(
      exec::LaunchOp launch) {
    std::vector<std::unique_ptr<program::TensorMapT>> maps;
    if (!launch.getMaps()) return maps;
    for (auto map : launch.getMaps()->getAsRange<exec::TensorMapAttr>()) {
      auto result = std::make_unique<program::TensorMapT>();
      result->operand = static_cast<int32_t>(map.getOperand());
      result->offset = map.getOffset();
      result->dtype = dtypeOf(
          typeOf(launch->getOperand(map.getOperand())).getElementType(), false);
      result->shape = vectorOf(map.getShape());
      result->strides = vectorOf(map.getStrides());
      result->box = vectorOf(map.getBox());
      result->swizzle = program::Swizzle::bytes128;
      maps.push_back(std::move(result));
    }
    return maps;
  }

  LogicalResult fillGemm(exec::GemmOp gemm,
                         program::OperationUnion& operation) {
    program::GemmT result;
    result.dtype = dtypeOf(typeOf(gemm.getResult()).getElementType(), false);
    llvm::ArrayRef<int64_t> sizes = gemm.getSizes();
    result.batch = sizes[0], result.m = sizes[1], result.n = sizes[2],
    result.k = sizes[3];
    result.lhs_strides = vectorOf(gemm.getLhsStrides());
    result.rhs_strides = vectorOf(gemm.getRhsStrides());
    result.out_strides = {result.m * result.n, result.n, 1};
    result.has_bias = gemm.getBias() != nullptr;
    result.has_residual = gemm.getResidual() != nullptr;
    result.activation = format::ToFormat(gemm.getActivation());
    result.group = static_cast<int64_t>(gemm.getGroup().value_or(0));
    result.has_zero = gemm.getZero() != nullptr;
    if (result.group > 0)
      result.factors = program::GemmFactors::rhs_i4;
    else if (const auto lhs = typeOf(gemm.getLhs()).getElementType();
             lhs.isFloat() && lhs.getIntOrFloatBitWidth() == 8)
      result.factors = llvm::isa<mlir::Float8E5M2Type>(lhs)
                           ? program::GemmFactors::f8_lhs_e5m2
                       : llvm::isa<mlir::Float8E5M2Type>(
                             typeOf(gemm.getRhs()).getElementType())
                           ? program::GemmFactors::f8_rhs_e5m2
                           : program::GemmFactors::f8;
    else if (typeOf(gemm.getRhs()).getElementType().isInteger(8))
      result.factors = gemm.getLhsUnsigned() ? program::GemmFactors::u8_i8
                       : typeOf(gemm.getLhs()).getElementType().isF32()
                           ? program::GemmFactors::rhs_i8
                           : program::GemmFactors::i8;
    if (gemm.getKept()) result.preactivation = program::Preactivation::kept;
    if (gemm.getPreactivation())
      result.preactivation = program::Preactivation::given;
    if (gemm.getLhsSums()) result.sums = program::GemmSums::lhs;
    if (gemm.getRhsSums()) result.sums = program::GemmSums::rhs;
    operation.Set(std::move(result));
    return success();
  }

  static void fillGroupedGemm(exec::GroupedGemmOp gemm,
                              program::OperationUnion& operation) {
    program::GroupedGemmT result;
    const RankedTensorType ids = typeOf(gemm.getIds());
    const RankedTensorType matrices =
        typeOf(gemm.getWeightGrad() ? gemm.getResult() : gemm.getRhs());
    result.dtype = dtypeOf(matrices.getElementType(), false);
    result.ids = dtypeOf(ids.getElementType(), false);
    result.rows = ids.getDimSize(0);
    result.lhs_rows = typeOf(gemm.getLhs()).getDimSize(0);
    result.groups = matrices.getDimSize(0);
    result.n = matrices.getDimSize(gemm.getTransposed() ? 2 : 1);
    result.k = matrices.getDimSize(gemm.getTransposed() ? 1 : 2);
    result.transposed = gemm.getTransposed();
    result.weight_grad = gemm.getWeightGrad();
    operation.Set(std::move(result));
  }

  LogicalResult fillConv(exec::ConvOp conv,
                         program::OperationUnion& operation) {
    program::ConvT result;
    result.dtype = dtypeOf(typeOf(conv.getResult()).getElementType(),
                           conv.getResultUnsigned());
    result.input_shape = vectorOf(typeOf(conv.getInput()).getShape());
    result.weight_shape = vectorOf(typeOf(conv.getWeight()).getShape());
    result.out_shape = vectorOf(typeOf(conv.getResult()).getShape());
    result.direction = format::ToFormat(conv.getDirection());
    // The shapes describe the convolution, whichever tensor is computed.
    if (conv.getDirection() == exec::ConvDirection::kInputGrad)
      std::swap(result.input_shape, result.out_shape);
    if (conv.getDirection() == exec::ConvDirection::kWeightGrad)
      std::swap(result.weight_shape, result.out_shape);
    result.strides = vectorOf(conv.getStrides());
    result.dilations = vectorOf(conv.getDilations());
    result.low = vectorOf(conv.getLow());
    result.high = vectorOf(conv.getHigh());
    result.groups = conv.getGroups();
    result.channels_last = conv.getChannelsLast();
    result.has_bias = conv.getBias() != nullptr;
    result.has_residual = conv.getResidual() != nullptr;
    result.activation = format::ToFormat(conv.getActivation());
    result.activates_sum = conv.getActivatesSum();
    if (conv.getScale())
      result.factors = conv.getInputUnsigned() ? program::GemmFactors::u8_i8
                                               : program::GemmFactors::i8;
    result.has_zero = conv.getZero() != nullptr;
    operation.Set(std::move(result));
    return success();
  }

  // Checks that each result is in the caller's memory.
  LogicalResult checkReturned() {
    mlir::Operation* terminator = function_.front().getTerminator();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      const Buffer from = buffers_[value];
      if (from.space() != Space::argument ||
          from.value() !=
              function_.getNumArguments() + static_cast<int64_t>(index))
        return terminator->emitOpError("expected result ")
               << index
               << " in the caller's memory, where partita-copy-returned copies "
                  "it, found it elsewhere";
    }
    return success();
  }

  FuncOp function_;
  const llvm::StringMap<int>& functions_;
  const llvm::StringMap<int>& kernels_;
  program::DataSection& data_;
  llvm::DenseMap<Value, Buffer> buffers_;
  llvm::DenseMap<mlir::Attribute, int64_t> constants_;
};

}  // namespace

program::DType dtypeOf(mlir::Type type, bool is_unsigned) {
  using program::DType;
  if (type.isF32()) return DType::f32;
  if (type.isF64()) return DType::f64;
  if (type.isF16()) return DType::f16;
  if (type.isBF16()) return DType::bf16;
  if (llvm::isa<mlir::Float8E4M3FNType>(type)) return DType::f8e4m3;
  if (llvm::isa<mlir::Float8E5M2Type>(type)) return DType::f8e5m2;
  if (type.isInteger(1)) return DType::i1;
  if (type.isInteger(8)) return is_unsigned ? DType::u8 : DType::i8;
  if (type.isInteger(16)) return is_unsigned ? DType::u16 : DType::i16;
  if (type.isInteger(32)) return is_unsigned ? DType::u32 : DType::i32;
  return is_unsigned ? DType::u64 : DType::i64;
}

std::unique_ptr<program::TensorTypeT> tensorType(RankedTensorType type,
                                                 bool is_unsigned) {
  auto result = std::make_unique<program::TensorTypeT>();
  result->dtype = dtypeOf(type.getElementType(), is_unsigned);
  result->shape = vectorOf(type.getShape());
  return result;
}

FailureOr<std::unique_ptr<program::FunctionT>> emitFunction(
    FuncOp function, const llvm::StringMap<int>& function_index,
    const llvm::StringMap<int>& kernel_index, program::DataSection& data) {
  return FunctionEmitter(function, function_index, kernel_index, data).run();
}

}  // namespace partita::emit
