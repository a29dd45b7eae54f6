// Counts operations, weighted by the trips of the loops around them.
#include "compiler/kernels/estimate_work.h"

#include <algorithm>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

namespace partita::kernels {
namespace {

using namespace mlir;

// Cycles are taken as 4 a nanosecond.
constexpr double kGrainCycles = 20e3 * 4;
// Trips of a loop whose bounds are known at run time only: a chunk.
constexpr double kUnknownTrips = 128;

double cyclesOf(Operation& op) {
  int64_t registers = 1;
  if (op.getNumResults() > 0)
    if (auto type = dyn_cast<VectorType>(op.getResult(0).getType()))
      registers = std::max<int64_t>(1, type.getNumElements() / 16);
  if (isa<arith::ConstantOp>(op)) return 0;
  if (isa<math::MathDialect>(op.getDialect())) return 15.0 * registers;
  if (isa<vector::GatherOp, vector::ScatterOp>(op)) return 20.0 * registers;
  if (isa<arith::DivFOp, arith::DivUIOp, arith::RemUIOp, vector::ReductionOp>(
          op))
    return 6.0 * registers;
  if (isa<vector::LoadOp, vector::MaskedLoadOp, vector::StoreOp,
          vector::MaskedStoreOp>(op))
    return 3.0 * registers;
  return 0.5 * registers;
}

double tripsOf(scf::ForOp loop) {
  APInt begin, end, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&begin)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&end)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)))
    return kUnknownTrips;
  return std::max<double>(
      0, static_cast<double>(end.getSExtValue() - begin.getSExtValue()) /
             step.getSExtValue());
}

double cyclesOf(Region& region) {
  double cycles = 0;
  for (Block& block : region) {
    for (Operation& op : block) {
      double inside = 0;
      for (Region& nested : op.getRegions()) inside += cyclesOf(nested);
      if (auto loop = dyn_cast<scf::ForOp>(op)) inside *= tripsOf(loop);
      cycles += inside + cyclesOf(op);
    }
  }
  return cycles;
}

}  // namespace

int64_t chooseGrain(func::FuncOp body, int64_t range) {
  // The loops at the top run over the range; what one trip costs is what
  // counts.
  double cycles = 1;
  for (scf::ForOp loop : body.getOps<scf::ForOp>())
    cycles += cyclesOf(loop.getRegion());
  return std::clamp<int64_t>(static_cast<int64_t>(kGrainCycles / cycles), 1,
                             std::max<int64_t>(range, 1));
}

}  // namespace partita::kernels
