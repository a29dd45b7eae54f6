// The lowering of generated functions to LLVM that all targets share.
#include "compiler/kernels/lower_to_llvm.h"

#include "compiler/kernels/lower_math.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace partita::kernels {

using namespace mlir;

namespace {

bool isBf16(Type type) { return getElementTypeOrSelf(type).isBF16(); }

// Casts between f64 and bf16 in two steps through f32, as no processor casts in
// one. A number near the middle of two bf16 numbers may round to the other one.
template <typename Cast>
struct CastTwice : OpRewritePattern<Cast> {
  using OpRewritePattern<Cast>::OpRewritePattern;
  LogicalResult matchAndRewrite(Cast op,
                                PatternRewriter& rewriter) const override {
    const Type from = op.getIn().getType(), to = op.getType();
    const Type narrow = isBf16(from) ? from : to,
               wide = isBf16(from) ? to : from;
    if (!isBf16(narrow) || !getElementTypeOrSelf(wide).isF64())
      return failure();
    Type between = rewriter.getF32Type();
    if (auto vector = dyn_cast<VectorType>(from))
      between = vector.clone(between);
    Value value = Cast::create(rewriter, op.getLoc(), between, op.getIn());
    rewriter.replaceOpWithNewOp<Cast>(op, to, value);
    return success();
  }
};

// For targets on which bf16 is an integer.
struct ConstantOfBits : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(
      arith::ConstantOp op, OpAdaptor,
      ConversionPatternRewriter& rewriter) const override {
    if (!isBf16(op.getType())) return failure();
    const Type bits = rewriter.getI16Type();
    Attribute value;
    if (auto number = dyn_cast<FloatAttr>(op.getValue()))
      value = rewriter.getIntegerAttr(bits, number.getValue().bitcastToAPInt());
    else if (auto numbers = dyn_cast<DenseElementsAttr>(op.getValue()))
      value = numbers.bitcast(bits);
    else
      return failure();
    rewriter.replaceOpWithNewOp<LLVM::ConstantOp>(
        op, getTypeConverter()->convertType(op.getType()), value);
    return success();
  }
};

// Expands math and vector operations that LLVM lacks into operations that it
// has.
LogicalResult expandOperations(ModuleOp module, MathLibrary library,
                               Bf16 bf16) {
  RewritePatternSet patterns(module.getContext());
  populateMathLowerings(patterns, library);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorStepLoweringPatterns(patterns);
  vector::populateVectorMaskMaterializationPatterns(
      patterns,
      /*force32BitVectorIndices=*/true);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  if (library == MathLibrary::kLibm)
    patterns.add<CastTwice<arith::TruncFOp>, CastTwice<arith::ExtFOp>>(
        module.getContext());
  if (bf16 == Bf16::kInteger) arith::populateExpandBFloat16Patterns(patterns);
  GreedyRewriteConfig config;
  return applyPatternsGreedily(module, std::move(patterns), config);
}

LogicalResult lowerControlFlow(ModuleOp module) {
  MLIRContext* context = module.getContext();
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  ConversionTarget target(*context);
  target.addIllegalDialect<scf::SCFDialect>();
  target.markUnknownOpDynamicallyLegal([](Operation*) { return true; });
  return applyPartialConversion(module, target, std::move(patterns));
}

LogicalResult lowerToLlvmDialect(ModuleOp module, Bf16 bf16) {
  MLIRContext* context = module.getContext();
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(context, options);
  RewritePatternSet patterns(context);
  if (bf16 == Bf16::kInteger) {
    converter.addConversion([](BFloat16Type type) {
      return IntegerType::get(type.getContext(), 16);
    });
    converter.addConversion([&](VectorType type) -> std::optional<Type> {
      if (!isBf16(type)) return std::nullopt;
      return converter.convertType(
          type.clone(IntegerType::get(type.getContext(), 16)));
    });
    patterns.add<ConstantOfBits>(converter, context, /*benefit=*/2);
  }
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  if (failed(applyPartialConversion(module, target, std::move(patterns))))
    return failure();
  SmallVector<UnrealizedConversionCastOp> casts;
  module.walk([&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
  reconcileUnrealizedCasts(casts);
  return success();
}

// Without a library, the remaining math operations must have an instruction.
LogicalResult checkMath(ModuleOp module) {
  WalkResult checked = module.walk([](Operation* op) {
    if (!isa<math::MathDialect>(op->getDialect()) || isMathInstruction(op))
      return WalkResult::advance();
    op->emitOpError() << "expected a function that this target has "
                         "instructions for, found one of "
                      << op->getOperand(0).getType()
                      << "; only the CPU has a library for it";
    return WalkResult::interrupt();
  });
  return failure(checked.wasInterrupted());
}

}  // namespace

LogicalResult lowerToLlvm(ModuleOp module, MathLibrary library, Bf16 bf16) {
  if (failed(expandOperations(module, library, bf16)) ||
      (library == MathLibrary::kNone && failed(checkMath(module))))
    return failure();
  if (failed(lowerControlFlow(module)) ||
      failed(lowerToLlvmDialect(module, bf16)))
    return module.emitError(
        "expected all operations of generated kernels to lower to LLVM");
  return success();
}

void optimizeModule(llvm::Module& module, llvm::TargetMachine& machine,
                    int level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  // The code consists of vectors already.
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder passes(&machine, tuning);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(graphs);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::OptimizationLevel opt = level >= 3   ? llvm::OptimizationLevel::O3
                                : level == 2 ? llvm::OptimizationLevel::O2
                                             : llvm::OptimizationLevel::O1;
  passes.buildPerModuleDefaultPipeline(opt).run(module, modules);
}

}  // namespace partita::kernels
