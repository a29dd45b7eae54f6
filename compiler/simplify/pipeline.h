// The order of the passes of this folder.
#ifndef PARTITA_COMPILER_SIMPLIFY_PIPELINE_H_
#define PARTITA_COMPILER_SIMPLIFY_PIPELINE_H_

#include "mlir/Pass/PassManager.h"

namespace partita::simplify {

struct SimplifyOptions {
  // Batch norms stay what they are: their parameters are trained.
  bool training = false;
  // Repeated layers become functions.
  bool outline_layers = true;
};

// From an imported module to one with composites and layer functions. Wants
// @main. What is divided is divided after this.
void buildSimplifyPipeline(mlir::OpPassManager& pm,
                           const SimplifyOptions& options = {});

struct LoadTimeOptions {
  // The weights change between runs: nothing that depends on them moves to load
  // time.
  bool training = false;
  // Matrix products that share their left operand become one.
  bool merge_projections = false;
};

// Then, on what one device computes: work on parameters moves to @init, for
// inference, and signatures lose what nobody needs.
void buildLoadTimePipeline(mlir::OpPassManager& pm,
                           const LoadTimeOptions& options = {});

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_PIPELINE_H_
