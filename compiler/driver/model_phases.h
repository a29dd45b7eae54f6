// The first half of the compiler's table of contents: what happens to a model
// before it is cut into kernels.
#ifndef PARTITA_COMPILER_DRIVER_MODEL_PHASES_H_
#define PARTITA_COMPILER_DRIVER_MODEL_PHASES_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "mlir/Pass/PassManager.h"

namespace partita::driver {

// A phase of the compiler that passes make up; each ends with verified IR,
// dumped under its number with --dump-dir.
struct Phase {
  std::string name;
  std::function<void(mlir::OpPassManager&)> build;
};

// nn to nn: what concerns the model alone.
std::vector<Phase> simplifyModel();

// Whole tensors to the program of one device, as the plan says.
std::vector<Phase> divideModel(const plan::Plan& plan);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_MODEL_PHASES_H_
