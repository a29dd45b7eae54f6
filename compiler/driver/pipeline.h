// The second half of the compiler's table of contents: from the program of one
// device to what is written. model_phases.h has the first.
#ifndef PARTITA_COMPILER_DRIVER_PIPELINE_H_
#define PARTITA_COMPILER_DRIVER_PIPELINE_H_

#include <vector>

#include "compiler/driver/model_phases.h"

namespace partita::driver {

// nn on local shapes to exec: everything else before code generation.
std::vector<Phase> lowerToExec(bool training = false);

// exec to planned exec: everything between code generation and emission.
std::vector<Phase> planResources();

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PIPELINE_H_
