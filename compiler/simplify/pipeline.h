// Orders the passes of this folder.
#ifndef PARTITA_COMPILER_SIMPLIFY_PIPELINE_H_
#define PARTITA_COMPILER_SIMPLIFY_PIPELINE_H_

#include "mlir/Pass/PassManager.h"

namespace partita::simplify {

struct SimplifyOptions {
  // Keep batch norms, because their parameters are trained.
  bool training = false;
  // Make functions of repeated layers.
  bool outline_layers = true;
};

// Builds the passes from an imported module to one with composites and layer
// functions. Requires @main. Sharding and partitioning come afterwards.
void buildSimplifyPipeline(mlir::OpPassManager& pm,
                           const SimplifyOptions& options = {});

struct LoadTimeOptions {
  // The weights change between runs, so no work on them moves to load time.
  bool training = false;
  // Merge matrix products that share their left operand.
  bool merge_projections = false;
  // The libraries of a GPU run the program.
  bool gpu = false;
};

// Builds the passes on one device's program: in inference, work on parameters
// moves to @init; unused arguments and results are removed.
void buildLoadTimePipeline(mlir::OpPassManager& pm,
                           const LoadTimeOptions& options = {});

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_PIPELINE_H_
