// Other people's training software, as the `framework` column of a sweep names
// it.
#ifndef PARTITA_COMPILER_PLANNER_PUBLISHED_FRAMEWORKS_H_
#define PARTITA_COMPILER_PLANNER_PUBLISHED_FRAMEWORKS_H_

#include <string>
#include <vector>

#include "compiler/planner/transformer/software.h"

namespace partita::planner {

// Constants that all software shares, fitted to published steps by
// tests/bench/planner/calibrate.py. The shares of the devices' peaks, fitted
// with them, are in cluster_builtin.cc.
struct Calibration {
  double dispatch;  // host seconds per forward pass of a layer
  double step;      // seconds per step outside the layers
};
const Calibration& PublishedCalibration();
// Replaces the constants; pointers to the software stay valid.
void Calibrate(const Calibration& calibration);

// By the words of a `framework` column ("Megatron-LM v1.x", "Composer+PyTorch
// FSDP" ...), in any case; our own where there are none; null where none is
// known.
const Software* FindSoftware(const std::string& framework);
// The words of those there are, for refusals.
std::vector<std::string> FrameworkNames();
// Of words that are known.
const Software& SoftwareOf(const std::string& framework);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_PUBLISHED_FRAMEWORKS_H_
