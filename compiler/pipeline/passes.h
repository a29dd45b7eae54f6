// Passes that spread a model over the stages of a pipeline; see passes.td.
#ifndef PARTITA_COMPILER_PIPELINE_PASSES_H_
#define PARTITA_COMPILER_PIPELINE_PASSES_H_

#include <memory>

#include "mlir/Pass/Pass.h"

namespace partita::pipeline {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/pipeline/passes.h.inc"

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_PASSES_H_
