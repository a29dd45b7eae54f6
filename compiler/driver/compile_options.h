// Options of a compilation.
#ifndef PARTITA_COMPILER_DRIVER_COMPILE_OPTIONS_H_
#define PARTITA_COMPILER_DRIVER_COMPILE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/train_options.h"
#include "compiler/plan/plan.h"

namespace partita::driver {

struct CompileOptions {
  std::string output;  // path of the artifact
  std::string source_folder =
      ".";  // relative weight paths in the module are relative to it
  std::string target = "cpu";  // in the list of targets.h: "cuda:sm_90" ...
  std::string cpu = "host";    // an LLVM CPU name, or host
  // GPUs whose machine code is embedded (targets.h); none: the target's.
  std::optional<std::vector<std::string>> cubins;
  bool embed_weights = false;      // copy weights into the artifact
  bool overlap = true;             // collectives run beside other work
  bool progress = true;            // print the progress of slow compilations
  std::string dump_dir;            // numbered IR after each phase; empty: none
  std::optional<plan::Plan> plan;  // how to divide; none: one device
  TrainOptions train;              // without an optimizer: inference
  plan::Precision precision = plan::Precision::kF32;  // if the plan has none
  std::optional<int64_t> memory;  // bytes per device, if the plan has none
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMPILE_OPTIONS_H_
