// Costs of a program's instructions on a cluster, from the planner's cost
// model.
#ifndef PARTITA_COMPILER_SIMULATOR_CLUSTER_COSTS_H_
#define PARTITA_COMPILER_SIMULATOR_CLUSTER_COSTS_H_

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "compiler/core/precision.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/simulator/costs.h"
#include "compiler/simulator/faults.h"

namespace partita::simulator {

// Estimated cycles of one core per unit of a launch's range, by kernel. 0:
// unknown.
std::vector<double> KernelCyclesOf(const program::Program& program);

// A launch as a user of parameters.
struct ParameterUse {
  bool overwrites = false;  // every result replaces a parameter that it reads
  // Bytes of parameters in host memory.
  double host_read = 0;
  double host_written = 0;
};

// Launches in mains that overwrite parameters, or that access parameters in
// host memory.
using ParameterUses = std::map<const program::Instruction*, ParameterUse>;
ParameterUses ParameterUsesOf(const program::Program& program);

// Costs on a cluster with optional faults. Rank r of the program's mesh is
// device r of the cluster, which must have enough devices.
//
// A matrix product takes the time of its shape and of its factors' precision.
// Factors of 8 bits take the time of bf16 on devices without a peak for f8. A
// convolution takes the time of the product it amounts to, or the measured time
// of such convolutions. A kernel takes the longer of its memory time (each
// operand counted once) and its arithmetic time. Its arithmetic is the
// compiler's cycle estimate on CPUs. On GPUs, and wherever attention was
// measured, it is the operations of attention's products. States in host memory
// travel over the host's link, both ways at once, while the kernel works. A
// faulty device computes slower. A faulty link slows all messages over it.
class ClusterCosts : public Costs {
 public:
  ClusterCosts(planner::Cluster cluster, Faults faults,
               std::vector<double> kernel_cycles = {},
               ParameterUses parameter_uses = {});

  const planner::Cluster& cluster() const { return cluster_; }

  double Compute(const program::Program& program,
                 const program::Instruction& instruction) const override;
  double Slowness(int64_t rank) const override;
  double Collective(const program::Collective& collective,
                    const std::vector<int64_t>& ranks) const override;
  bool Overlaps() const override { return cluster_.device.overlaps; }
  double Transfer(int64_t from, int64_t to, int64_t bytes) const override;

 private:
  double Kernel(const program::Launch& launch,
                const program::Instruction& instruction) const;
  double Product(core::Precision precision, int64_t batch, int64_t m, int64_t n,
                 int64_t k, planner::ProductForm form) const;
  double Gemm(const program::Program& program, const program::Gemm& gemm,
              const program::Instruction& instruction) const;
  double GroupedGemm(const program::Program& program,
                     const program::GroupedGemm& gemm,
                     const program::Instruction& instruction) const;
  double Convolution(const program::Conv& conv,
                     const program::Instruction& instruction) const;

  planner::Cluster cluster_;
  Faults faults_;
  std::vector<double> kernel_cycles_;
  ParameterUses parameter_uses_;
};

// Refuses a program with products in a precision that the device cannot run: it
// has no peak for that precision and none for f32, the fallback.
absl::Status CheckPeaks(const program::Program& program,
                        const ClusterCosts& costs);

// Bytes that determine a collective's time, counted as in planner/cost/cost.h.
int64_t CostBytes(const program::Collective& collective);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_CLUSTER_COSTS_H_
