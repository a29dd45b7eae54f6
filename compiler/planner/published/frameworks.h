// Training software of other projects, by the names in the `framework` column
// of a sweep.
#ifndef PARTITA_COMPILER_PLANNER_PUBLISHED_FRAMEWORKS_H_
#define PARTITA_COMPILER_PLANNER_PUBLISHED_FRAMEWORKS_H_

#include <string>
#include <vector>

#include "compiler/planner/transformer/software.h"

namespace partita::planner {

// Constants common to all software, fitted to published steps by
// tests/bench/planner/calibrate.py. The devices' shares of their peaks, fitted
// together with them, are in cluster_builtin.cc.
struct Calibration {
  double dispatch;  // host seconds per forward pass of a layer
  double step;      // seconds per step outside the layers
};
const Calibration& PublishedCalibration();
// Replaces the constants. Pointers to software stay valid.
void Calibrate(const Calibration& calibration);

// Software by the text of a `framework` column ("Megatron-LM v1.x",
// "Composer+PyTorch FSDP" ...), ignoring case. Partita if the text is empty.
// Null if unknown. Options may follow the name: ", f32 gradients" and
// ", blocking launches" for DeepSpeed, ", eager" for torchtitan.
const Software* FindSoftware(const std::string& framework);
// Known names, for refusals.
std::vector<std::string> FrameworkNames();
// Same as FindSoftware, for a known name.
const Software& SoftwareOf(const std::string& framework);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_PUBLISHED_FRAMEWORKS_H_
