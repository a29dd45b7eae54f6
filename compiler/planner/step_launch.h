// What one device does of a step that was compiled for a mapping and a mesh:
// kernels, library calls and collectives, by their sizes.
#ifndef PARTITA_COMPILER_PLANNER_STEP_LAUNCH_H_
#define PARTITA_COMPILER_PLANNER_STEP_LAUNCH_H_

#include <cstdint>
#include <vector>

#include "compiler/core/traffic.h"
#include "compiler/planner/cluster.h"
#include "compiler/planner/cost.h"

namespace partita::planner {

struct StepLaunch {
  // kStream: a kernel bound by what it reads and writes, or a copy.
  enum class Kind { kProduct, kConvolution, kAttention, kStream, kCollective };

  Kind kind = Kind::kStream;
  // What it was made of: an operation of its function's, by StepRun's numbers.
  int origin = -1;
  Precision precision = Precision::kF32;
  // Read and written; of kCollective as cost.h counts them; else unused.
  double bytes = 0;
  double operations = 0;  // of kAttention: those of its products
  bool backward = false;  // of kAttention
  bool updates = false;   // of kStream: a parameter and its states
  int64_t batch = 0, m = 0, n = 0, k = 0;  // of kProduct
  ProductForm form = ProductForm::kPlain;
  Convolution convolution;  // of kConvolution
  core::CollectiveKind collective = core::CollectiveKind::kAllReduce;
  std::vector<int> ranks;  // of kCollective: a group; the others are alike
  // Of kCollective: nothing but updates waits for it. Of others: of the
  // backward pass, beside which such collectives run.
  bool beside = false;
};
// [functions]: of each, all in order.
using StepLaunches = std::vector<std::vector<StepLaunch>>;

// Seconds until the next one can run, as the simulator has them. On a CPU the
// updates of all parameters are one launch.
double LaunchTime(const Cluster& cluster, const StepLaunch& launch);
// Seconds of a step by what they go to.
struct StepParts {
  double compute = 0;      // kernels, library calls and copies
  double collectives = 0;  // which what follows waits for
  double gradients = 0;    // what the backward pass does not hide
  double total() const { return compute + collectives + gradients; }
};
// Of a step of all of these launches.
StepParts PartsOfStep(const Cluster& cluster,
                      const std::vector<StepLaunch>& step);
// Of an update of a parameter, of so many bytes.
double UpdateLaunchTime(const Device& device, double bytes);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_STEP_LAUNCH_H_
