// Runs the lists of pipeline.cc from a given phase on.
#include "compiler/driver/phase_pipelines.h"

#include <string>
#include <vector>

#include "compiler/driver/pipeline.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

namespace partita::driver {
namespace {

struct FromOptions : mlir::PassPipelineOptions<FromOptions> {
  Option<std::string> phase{*this, "phase",
                            llvm::cl::desc("The first phase to run")};
  Option<bool> training{*this, "training",
                        llvm::cl::desc("The module is a training step"),
                        llvm::cl::init(false)};
  Option<bool> gpu{*this, "gpu", llvm::cl::desc("Kernels run on a GPU"),
                   llvm::cl::init(false)};
  Option<bool> float8{*this, "float8",
                      llvm::cl::desc("The GPU multiplies floats of 8 bits"),
                      llvm::cl::init(false)};
  Option<int64_t> prefetch{
      *this, "prefetch",
      llvm::cl::desc("Gather parameters this many layers ahead"),
      llvm::cl::init(0)};
};

void build(mlir::OpPassManager& pm, const FromOptions& options) {
  std::vector<Phase> phases =
      lowerToExec({options.training, options.gpu, options.float8});
  OrderOptions order;
  order.prefetch = options.prefetch;
  phases.push_back(orderWork(order));
  for (Phase& phase : planResources({options.training, options.gpu}))
    phases.push_back(std::move(phase));
  auto first = llvm::find_if(phases, [&](const Phase& phase) {
    return phase.name == options.phase.getValue();
  });
  if (first == phases.end()) {
    llvm::errs() << "partita-from: expected phase= with one of";
    for (const Phase& phase : phases) llvm::errs() << " " << phase.name;
    llvm::errs() << ", found '" << options.phase.getValue()
                 << "': nothing is run\n";
    return;
  }
  for (auto phase = first; phase != phases.end(); ++phase) phase->build(pm);
}

}  // namespace

void registerPhasePipelines() {
  mlir::PassPipelineRegistration<FromOptions>(
      "partita-from", "Run this phase and all later ones", build);
}

}  // namespace partita::driver
