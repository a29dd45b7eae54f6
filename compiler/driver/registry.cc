// Registration in one place, so that every tool knows the same things.
#include "compiler/driver/registry.h"

#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/passes.h"
#include "compiler/kernels/codegen.h"
#include "compiler/kernels/kernel_op_interface.h"
#include "compiler/kernels/object.h"
#include "compiler/kernels/passes.h"
#include "compiler/memory/passes.h"
#include "compiler/partition/local_form.h"
#include "compiler/partition/passes.h"
#include "compiler/pipeline/passes.h"
#include "compiler/recompute/passes.h"
#include "compiler/sharding/passes.h"
#include "compiler/simplify/passes.h"
#include "dialects/dist/dialect.h"
#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/Extensions/AllExtensions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/Passes.h"

namespace partita::driver {

void registerDialects(mlir::DialectRegistry& registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, dist::DistDialect, exec::ExecDialect,
                  nn::NNDialect>();
  mlir::func::registerAllExtensions(registry);
  nn::registerExternalModels(registry);
  autodiff::registerGradients(registry);
  partition::registerLocalForms(registry);
  kernels::registerKernelModels(registry);
  kernels::registerCodegenDialects(registry);
  kernels::registerObjectTranslations(registry);
}

void registerPasses() {
  simplify::registerSimplifyPasses();
  autodiff::registerAutodiffPasses();
  sharding::registerShardingPasses();
  pipeline::registerPipelinePasses();
  recompute::registerRecomputePasses();
  partition::registerPartitionPasses();
  kernels::registerKernelsPasses();
  memory::registerMemoryPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
}

}  // namespace partita::driver
