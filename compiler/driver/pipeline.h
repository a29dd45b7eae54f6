// The second half of the compiler's table of contents: phases on the program of
// one device, up to emission. model_phases.h has the first half.
#ifndef PARTITA_COMPILER_DRIVER_PIPELINE_H_
#define PARTITA_COMPILER_DRIVER_PIPELINE_H_

#include <vector>

#include "compiler/driver/model_phases.h"
#include "compiler/plan/plan.h"

namespace partita::driver {

struct LowerOptions {
  bool training = false;
  bool gpu = false;     // kernels run on a GPU
  bool float8 = false;  // the GPU multiplies floats of 8 bits
};
// Lowers nn on local shapes to exec: all phases before code generation.
std::vector<Phase> lowerToExec(const LowerOptions& options);

struct OrderOptions {
  bool overlap = true;   // collectives may run beside other work
  int64_t prefetch = 0;  // calls that parameters are gathered ahead
  bool gpu = false;      // the host of a GPU waits for rows' counts
};
// Decides the order of each device's work.
Phase orderWork(const OrderOptions& options);
// Plans exec: all phases between code generation and emission.
std::vector<Phase> planResources(const LowerOptions& options);
// The options that the plan gives; `plan` may be null.
OrderOptions orderOf(const plan::Plan* plan, bool gpu, bool overlap = true);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PIPELINE_H_
