// Seconds that the layers of a pipelined model take on the target, from the
// price of a compiled step. They balance the stages.
#ifndef PARTITA_COMPILER_DRIVER_STAGE_TIMES_H_
#define PARTITA_COMPILER_DRIVER_STAGE_TIMES_H_

#include "compiler/driver/compile_options.h"
#include "compiler/pipeline/passes.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// `module` is at kSimplified and is not changed. The same plan without depth is
// compiled without machine code and simulated on devices of the target with
// free links. Empty if nothing is trained, or if the plan does not divide
// depth, lists its stages, or does not compile without depth; diagnostics are
// hidden.
pipeline::StageTimes stageTimes(mlir::ModuleOp module,
                                const CompileOptions& options);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_STAGE_TIMES_H_
