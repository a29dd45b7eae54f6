// The order of the passes of this folder.
#ifndef PARTITA_COMPILER_SIMPLIFY_PIPELINE_H_
#define PARTITA_COMPILER_SIMPLIFY_PIPELINE_H_

#include "mlir/Pass/PassManager.h"

namespace partita::simplify {

struct SimplifyOptions {
  // The weights change between runs: nothing that depends on them moves to load
  // time.
  bool training = false;
  // Matrix products that share their left operand become one.
  bool merge_projections = false;
};

// From an imported module to one with composites, layer functions and, for
// inference, @init. Wants @main.
void buildSimplifyPipeline(mlir::OpPassManager& pm,
                           const SimplifyOptions& options = {});

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_PIPELINE_H_
