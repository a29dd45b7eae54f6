// The second half of the compiler's table of contents: from the program of one
// device to what is written. model_phases.h has the first.
#ifndef PARTITA_COMPILER_DRIVER_PIPELINE_H_
#define PARTITA_COMPILER_DRIVER_PIPELINE_H_

#include <vector>

#include "compiler/driver/model_phases.h"
#include "compiler/plan/plan.h"

namespace partita::driver {

struct LowerOptions {
  bool training = false;
  bool gpu = false;  // what runs the kernels
};
// nn on local shapes to exec: everything else before code generation.
std::vector<Phase> lowerToExec(const LowerOptions& options);

struct OrderOptions {
  bool overlap = true;   // collectives may run beside other work
  int64_t prefetch = 0;  // calls by which parameters are gathered ahead
};
// Decides the order of what each device does: the first of the below.
Phase orderWork(const OrderOptions& options);
// exec to planned exec: everything between code generation and emission.
std::vector<Phase> planResources(const OrderOptions& options);
// As the plan, which may be null, says.
OrderOptions orderOf(const plan::Plan* plan, bool overlap = true);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PIPELINE_H_
