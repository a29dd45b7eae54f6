// What the layers of a pipelined model take on the target, by the price of a
// compiled step: stages are balanced by these seconds.
#ifndef PARTITA_COMPILER_DRIVER_STAGE_TIMES_H_
#define PARTITA_COMPILER_DRIVER_STAGE_TIMES_H_

#include "compiler/driver/compile_options.h"
#include "compiler/pipeline/passes.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Of a model at kSimplified, which stays as it is: the same plan without depth
// is compiled without machine code and simulated on a device of the target,
// links taken as free. Empty where the plan does not divide depth, lists its
// stages, or does not compile so; nothing is reported then.
pipeline::StageTimes stageTimes(mlir::ModuleOp module,
                                const CompileOptions& options);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_STAGE_TIMES_H_
