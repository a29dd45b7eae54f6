// What a program's parts cost on a cluster: the planner's cost model, applied
// to what instructions say of themselves.
#ifndef PARTITA_COMPILER_SIMULATOR_CLUSTER_COSTS_H_
#define PARTITA_COMPILER_SIMULATOR_CLUSTER_COSTS_H_

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/simulator/costs.h"
#include "compiler/simulator/faults.h"

namespace partita::simulator {

// Cycles of one core for one unit of a launch's range, by kernel, as the
// compiler estimates them; 0: unknown.
std::vector<double> KernelCyclesOf(const program::Program& program);

// Launches of mains that write parameters over those they read.
std::set<const program::Instruction*> UpdatesOf(
    const program::Program& program);

// Rank r of the program's mesh is device r of the cluster, which must have as
// many.
//
// A product takes its shape's time, a convolution that of the product it
// amounts to, or what such ones were measured to take. A kernel takes the
// longer of its bytes' time, operands counted once each, and its arithmetic's:
// on CPUs the compiler has estimated it, on GPUs it counts attention's
// products, and so it does where attention was measured. A fault on a device
// makes it compute slower, one on a link all that passes it.
class ClusterCosts : public Costs {
 public:
  ClusterCosts(planner::Cluster cluster, Faults faults,
               std::vector<double> kernel_cycles = {},
               std::set<const program::Instruction*> updates = {});

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
  double Product(program::DType dtype, int64_t batch, int64_t m, int64_t n,
                 int64_t k, planner::ProductForm form) const;
  double Gemm(const program::Program& program, const program::Gemm& gemm,
              const program::Instruction& instruction) const;
  double Convolution(const program::Conv& conv,
                     const program::Instruction& instruction) const;

  planner::Cluster cluster_;
  Faults faults_;
  std::vector<double> kernel_cycles_;
  std::set<const program::Instruction*> updates_;
};

// Refuses a program with products of a precision that the device has no peak
// of, nor of f32, which such are computed in: they would take forever.
absl::Status CheckPeaks(const program::Program& program,
                        const ClusterCosts& costs);

// The bytes that a collective's time depends on, as planner/cost/cost.h counts
// them.
int64_t CostBytes(const program::Collective& collective);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_CLUSTER_COSTS_H_
