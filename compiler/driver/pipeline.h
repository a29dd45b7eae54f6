// The table of contents of the compiler: what happens to a model, in order.
#ifndef PARTITA_COMPILER_DRIVER_PIPELINE_H_
#define PARTITA_COMPILER_DRIVER_PIPELINE_H_

#include <functional>
#include <string>
#include <vector>

#include "mlir/Pass/PassManager.h"

namespace partita::driver {

// A phase of the compiler that passes make up; each ends with verified IR,
// dumped under its number with --dump-dir.
struct Phase {
  std::string name;
  std::function<void(mlir::OpPassManager&)> build;
};

// nn to exec: everything between import and code generation.
std::vector<Phase> lowerToExec();

// exec to planned exec: everything between code generation and emission.
std::vector<Phase> planResources();

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PIPELINE_H_
