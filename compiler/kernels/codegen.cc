// Drives code generation for one kernel: decomposes composites, emits loops for
// each result shape, and estimates the work.
#include "compiler/kernels/codegen.h"

#include <functional>

#include "compiler/kernels/emit_attention.h"
#include "compiler/kernels/emit_attention_grad.h"
#include "compiler/kernels/emit_elements.h"
#include "compiler/kernels/emit_float8.h"
#include "compiler/kernels/emit_groups.h"
#include "compiler/kernels/emit_mma_attention.h"
#include "compiler/kernels/emit_mma_attention_grad.h"
#include "compiler/kernels/emit_models.h"
#include "compiler/kernels/emit_nest.h"
#include "compiler/kernels/emit_ordered.h"
#include "compiler/kernels/emit_row_sums.h"
#include "compiler/kernels/emit_scatter.h"
#include "compiler/kernels/emit_top_k.h"
#include "compiler/kernels/estimate_work.h"
#include "compiler/kernels/flat_kernels.h"
#include "compiler/kernels/lower_to_llvm.h"
#include "compiler/kernels/masks_as_bias.h"
#include "compiler/kernels/unroll_reads.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/ordered.h"
#include "llvm/TargetParser/Host.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

namespace partita::kernels {
namespace {

using namespace mlir;

// Decomposes composites without a rule of their own into operations with one.
LogicalResult decomposeComposites(func::FuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  Operation* attention = findAttention(kernel);
  if (!attention) attention = findAttentionGrad(kernel);
  bool changed = true;
  while (changed) {
    changed = false;
    SmallVector<Operation*> composites;
    kernel.walk([&](Operation* op) {
      if (isa<nn::DecompositionOpInterface>(op) &&
          !isa<KernelOpInterface>(op) && op != attention)
        composites.push_back(op);
    });
    for (Operation* op : composites) {
      rewriter.setInsertionPoint(op);
      FailureOr<SmallVector<Value>> values =
          cast<nn::DecompositionOpInterface>(op).decompose(rewriter);
      if (failed(values))
        return op->emitOpError(
            "expected a decomposition into operations that code can be "
            "generated for; it has none");
      rewriter.replaceOp(op, *values);
      changed = true;
    }
  }
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
  return success();
}

// The decomposed copy of `kernel` that code is generated from.
FailureOr<OwningOpRef<func::FuncOp>> decomposed(func::FuncOp kernel,
                                                const CodegenOptions& options) {
  OwningOpRef<func::FuncOp> copy = kernel.clone();
  if (options.tensor_cores) writeMasksAsBias(*copy);
  if (failed(decomposeComposites(*copy))) return failure();
  return copy;
}

// The chunk of a kernel made by flatForm; 0 for any other kernel.
int64_t flatChunkOf(func::FuncOp kernel) {
  auto chunk = kernel->getAttrOfType<IntegerAttr>(kFlatChunkAttr);
  return chunk ? chunk.getInt() : 0;
}

int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

// One of the functions of a kernel. `emit` fills it and returns the range.
struct Part {
  std::string symbol;
  int64_t team = 1;
  int64_t memory_bytes = 0;
  std::optional<PartWork> work;
  std::function<FailureOr<int64_t>(Emitter&, func::FuncOp)> emit;
};

// Makes the function on flat memrefs: arguments, results, memory (if there is
// any), begin, end, scratch. Buffers of a flat kernel may be as small as one
// chunk.
func::FuncOp makeBody(func::FuncOp kernel, const Part& part, ModuleOp target) {
  const int64_t flat_chunk = flatChunkOf(kernel);
  OpBuilder builder(kernel.getContext());
  SmallVector<Type> inputs;
  SmallVector<int64_t> bytes;
  auto addBuffer = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    Type element = tensor.getElementType();
    inputs.push_back(
        MemRefType::get({tensor.getNumElements()}, storedType(element)));
    bytes.push_back(bytesOf(flat_chunk > 0 && tensor.getRank() == 1
                                ? tensor.clone({flat_chunk})
                                : tensor));
  };
  llvm::for_each(kernel.getArgumentTypes(), addBuffer);
  llvm::for_each(kernel.getResultTypes(), addBuffer);
  if (part.memory_bytes > 0) {
    inputs.push_back(
        MemRefType::get({part.memory_bytes / 4}, builder.getF32Type()));
    bytes.push_back(part.memory_bytes);
  }
  inputs.append({builder.getIndexType(), builder.getIndexType(),
                 MemRefType::get({1}, builder.getI8Type())});
  builder.setInsertionPointToEnd(target.getBody());
  auto body = func::FuncOp::create(builder, kernel.getLoc(), part.symbol,
                                   builder.getFunctionType(inputs, {}));
  body->setAttr(kBuffersAttr, builder.getDenseI64ArrayAttr(bytes));
  body.addEntryBlock();
  return body;
}

bool ordersRows(func::FuncOp kernel) {
  return !kernel.getOps<nn::OrderRowsOp>().empty();
}

// Threads that compute an item of the range. Loops over elements and products
// on tensor cores are for teams; all other kernels are written for one thread.
int64_t teamOf(func::FuncOp kernel, const CodegenOptions& options) {
  if (nn::AttentionOp op = findAttention(kernel))
    return options.tensor_cores && isPlainAttention(op) && fitsMma(kernel, op)
               ? kBlock
               : 1;
  if (!findOrdered(kernel).empty()) return kBlock;
  return findAttentionGrad(kernel) ? 1 : options.team;
}

// Elements that a thread loads at a time. A thread of a warp takes 16 bytes:
// eight elements if almost all that the kernel reads and writes is 16-bit, in
// rows that fill the warp; else four.
int64_t lanesOf(func::FuncOp kernel, const CodegenOptions& options,
                int64_t team) {
  const int64_t lanes = options.vector_bytes / 4;
  if (team != kWarp) return lanes;
  int64_t bytes = 0, wide_bytes = 0;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                            kernel.getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getNumElements() == 1) continue;
    if (tensor.getShape().back() % (2 * lanes * team) != 0) return lanes;
    bytes += bytesOf(tensor);
    if (tensor.getElementTypeBitWidth() > 16) wide_bytes += bytesOf(tensor);
  }
  return bytes > 8 * wide_bytes ? 2 * lanes : lanes;
}

SmallVector<Output> outputsOf(func::FuncOp kernel, func::FuncOp body) {
  SmallVector<Output> outputs;
  for (const SmallVector<Output>& group : groupOutputs(kernel, body))
    llvm::append_range(outputs, group);
  return outputs;
}

SmallVector<Output> placedOutputsOf(func::FuncOp kernel, func::FuncOp body) {
  SmallVector<Value> results;
  SmallVector<Buffer> buffers;
  for (const Output& output : outputsOf(kernel, body)) {
    results.push_back(output.value);
    buffers.push_back(output.buffer);
  }
  return gradientsOf(results, buffers);
}

// Emits a kernel of one part, of any kind. Returns the range.
FailureOr<int64_t> emitKernel(Emitter& emitter, func::FuncOp kernel,
                              func::FuncOp body,
                              const CodegenOptions& options) {
  const SmallVector<Output> outputs = outputsOf(kernel, body);
  if (outputs.empty()) return 0;
  unsigned count = body.getNumArguments();
  Value begin = body.getArgument(count - 3), end = body.getArgument(count - 2);
  if (nn::AttentionOp op = findAttention(kernel)) {
    if (emitter.team() == kBlock)
      return emitMmaAttention(emitter, op, outputs, begin, end,
                              options.warpgroups && fitsWarpgroups(op));
    if (failed(emitAttention(emitter, op, outputs, begin, end)))
      return failure();
    return attentionRange(emitter, op);
  }
  if (nn::AttentionGradOp op = findAttentionGrad(kernel))
    return emitAttentionGrad(emitter, op, placedOutputsOf(kernel, body), begin,
                             end);
  if (nn::ScatterOp op = findScatter(kernel))
    return emitScatter(emitter, op, outputs.front(), begin, end);
  if (auto ops = findOrdered(kernel); !ops.empty())
    return emitOrdered(emitter, ops, outputs, begin, end, options.warpgroups);
  if (nn::TopKOp op = findTopK(kernel)) {
    if (failed(emitTopK(emitter, op, outputs, begin, end))) return failure();
    return topKRange(op);
  }
  if (const std::optional<RowSums> sums = findRowSums(outputs))
    return emitRowSums(emitter, *sums, begin, end);
  return emitGroups(emitter, kernel, body, flatChunkOf(kernel));
}

// Bytes of arguments and results that are neither among `values` nor inputs of
// them.
int64_t untouchedBytes(func::FuncOp kernel, SmallVector<Value> values) {
  llvm::SmallPtrSet<Value, 16> touched;
  while (!values.empty()) {
    Value value = values.pop_back_val();
    if (!touched.insert(value).second) continue;
    Operation* maker = value.getDefiningOp();
    if (maker && !isa<nn::AttentionGradOp>(maker))
      llvm::append_range(values, maker->getOperands());
  }
  int64_t bytes = 0;
  const auto count = [&](Value value) {
    if (!touched.contains(value))
      bytes += bytesOf(cast<RankedTensorType>(value.getType()));
  };
  llvm::for_each(kernel.getArguments(), count);
  for (const Output& result :
       gradientsOf(kernel.getBody().front().getTerminator()->getOperands(), {}))
    count(result.value);
  return bytes;
}

// Cycles in which an item of attention of a single query reads its keys and
// values, of which it uses each number once; 0 for other kernels.
double readingCycles(func::FuncOp kernel, int64_t range) {
  constexpr double kBytesPerCycle = 4;  // 16 GB/s at 4 cycles per nanosecond
  nn::AttentionOp op = findAttention(kernel);
  if (!op || cast<RankedTensorType>(op.getQ().getType()).getDimSize(2) != 1)
    return 0;
  double bytes = 0;
  for (Type type : kernel.getArgumentTypes())
    bytes += static_cast<double>(bytesOf(cast<RankedTensorType>(type)));
  return bytes / kBytesPerCycle / static_cast<double>(range);
}

// The parts of attention's gradient on tensor cores. The last one has the
// kernel's name.
SmallVector<Part> partsOfGrad(func::FuncOp kernel, nn::AttentionGradOp op,
                              bool warpgroups) {
  const SmallVector<Output> wanted =
      gradientsOf(kernel.getBody().front().getTerminator()->getOperands(), {});
  SmallVector<Part> parts;
  for (GradPart which : gradPartsOf(op, wanted)) {
    Part part;
    part.symbol = (kernel.getName() + "_part_" + Twine(parts.size())).str();
    part.team = kBlock;
    part.memory_bytes = 4 * sharedFloats(op, wanted, warpgroups);
    const GradWork work = workOf(op, which, wanted, warpgroups);
    part.work = {work.products.of_keys, work.products.of_values,
                 untouchedBytes(kernel, work.values) - 4 * work.shared_floats};
    part.emit = [=](Emitter& emitter, func::FuncOp body) mutable {
      const unsigned count = body.getNumArguments();
      return emitMmaAttentionGrad(
          emitter, op, which, placedOutputsOf(kernel, body),
          body.getArgument(count - 4), body.getArgument(count - 3),
          body.getArgument(count - 2), warpgroups);
    };
    parts.push_back(std::move(part));
  }
  parts.back().symbol = kernel.getName().str();
  return parts;
}

SmallVector<Part> allPartsOf(func::FuncOp kernel,
                             const CodegenOptions& options) {
  nn::AttentionGradOp grad = findAttentionGrad(kernel);
  if (grad && options.tensor_cores && isPlainAttention(grad) &&
      fitsMma(kernel, grad))
    return partsOfGrad(kernel, grad,
                       options.warpgroups && fitsWarpgroups(grad));
  Part whole;
  whole.symbol = kernel.getName().str();
  whole.team = teamOf(kernel, options);
  whole.emit = [=](Emitter& emitter, func::FuncOp body) {
    return emitKernel(emitter, kernel, body, options);
  };
  return {whole};
}

FailureOr<KernelCode> generatePart(func::FuncOp kernel, const Part& part,
                                   ModuleOp target,
                                   const CodegenOptions& options) {
  func::FuncOp body = makeBody(kernel, part, target);
  KernelCode code;
  code.symbol = part.symbol;
  code.team = part.team;
  code.memory_bytes = part.memory_bytes;
  code.work = part.work;
  Emitter emitter(kernel, body, lanesOf(kernel, options, code.team), code.team);
  FailureOr<int64_t> range = part.emit(emitter, body);
  if (failed(range)) {
    body->erase();
    return failure();
  }
  func::ReturnOp::create(emitter.builder());
  code.range = *range;
  code.scratch_bytes = emitter.scratchBytes();
  code.maps = emitter.maps();
  // Gives the scratch argument its final size.
  unsigned last = body.getNumArguments() - 1;
  auto type = MemRefType::get({std::max<int64_t>(code.scratch_bytes, 1)},
                              IntegerType::get(kernel.getContext(), 8));
  body.getArgument(last).setType(type);
  SmallVector<Type> inputs(body.getArgumentTypes());
  inputs[last] = type;
  body.setFunctionType(FunctionType::get(kernel.getContext(), inputs, {}));
  code.cycles = cyclesOfPiece(body);
  if (code.team == kWarp || ordersRows(kernel)) unrollReads(body);
  code.grain = chooseGrain(
      std::max(code.cycles, readingCycles(kernel, code.range)), code.range);
  return code;
}

}  // namespace

FailureOr<SmallVector<PartWork>> partWorkOf(func::FuncOp kernel,
                                            const CodegenOptions& options) {
  SmallVector<PartWork> works;
  // All other kernels are a single function.
  if (!findAttentionGrad(kernel)) return works;
  FailureOr<OwningOpRef<func::FuncOp>> copy = decomposed(kernel, options);
  if (failed(copy)) return failure();
  for (const Part& part : allPartsOf(**copy, options))
    if (part.work) works.push_back(*part.work);
  return works;
}

CodegenOptions hostCodegenOptions() {
  auto features = llvm::sys::getHostCPUFeatures();
  CodegenOptions options;
  options.vector_bytes = features.lookup("avx512f") ? 64
                         : features.lookup("avx")   ? 32
                                                    : 16;
  return options;
}

FailureOr<KernelCode> generateKernel(func::FuncOp kernel, ModuleOp target,
                                     const CodegenOptions& options) {
  FailureOr<OwningOpRef<func::FuncOp>> copy = decomposed(kernel, options);
  if (failed(copy)) return failure();
  std::vector<KernelCode> done;
  for (const Part& part : allPartsOf(**copy, options)) {
    FailureOr<KernelCode> code = generatePart(**copy, part, target, options);
    if (failed(code)) return failure();
    if (options.warpgroups && code->team == kBlock &&
        code->scratch_bytes > options.shared_bytes) {
      target.lookupSymbol(code->symbol)->erase();
      for (const KernelCode& earlier : done)
        target.lookupSymbol(earlier.symbol)->erase();
      CodegenOptions smaller = options;
      smaller.warpgroups = false;
      return generateKernel(kernel, target, smaller);
    }
    done.push_back(std::move(*code));
  }
  KernelCode code = std::move(done.back());
  done.pop_back();
  code.before = std::move(done);
  return code;
}

KernelRole kernelRole(Operation* op) {
  auto rule = dyn_cast<KernelOpInterface>(op);
  if (rule) return rule.kernelRole();
  if (isa<nn::AttentionOp>(op)) return KernelRole::attention;
  if (isa<nn::SoftmaxOp, nn::LayerNormOp, nn::RmsNormOp>(op))
    return KernelRole::row;
  return isa<nn::DecompositionOpInterface, nn::ScatterOp, nn::TopKOp,
             nn::OrderRowsOp, nn::OrderedDotOp, nn::OrderedDotWeightGradOp>(op)
             ? KernelRole::single
             : KernelRole::unsupported;
}

void registerKernelModels(DialectRegistry& registry) {
  nn::registerOrderedOperations(registry);
  registry.addExtension(
      +[](MLIRContext* context, arith::ArithDialect*, math::MathDialect*) {
        attachElementwiseModels(*context);
        attachNumberModels(*context);
      });
  registry.addExtension(+[](MLIRContext* context, nn::NNDialect*) {
    attachMovementModels(*context);
    attachReductionModels(*context);
  });
}

void registerCodegenDialects(DialectRegistry& registry) {
  registry
      .insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
              LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
              scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();
}

#include "compiler/kernels/kernel_op_interface.cc.inc"

}  // namespace partita::kernels
