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

// Assumes 4 cycles per nanosecond.
constexpr double kGrainCycles = 20e3 * 4;
double cyclesOf(Operation& op) {
  VectorType type;
  for (Value operand : op.getOperands())
    if (auto vector = dyn_cast<VectorType>(operand.getType())) type = vector;
  if (op.getNumResults() > 0)
    if (auto vector = dyn_cast<VectorType>(op.getResult(0).getType()))
      type = vector;
  // Scalars are mostly addresses, many of which LLVM removes.
  if (!type) return isa<math::MathDialect>(op.getDialect()) ? 5 : 0.1;
  double bytes = type.getNumElements() *
                 std::max<unsigned>(8, type.getElementTypeBitWidth()) / 8.0;
  double registers = std::max(1.0, bytes / 64);
  if (isa<arith::ConstantOp, vector::BroadcastOp>(op)) return 0;
  if (isa<math::FmaOp, vector::FMAOp>(op)) return 0.5 * registers;
  if (isa<math::MathDialect>(op.getDialect())) return 7 * registers;
  if (isa<vector::GatherOp, vector::ScatterOp>(op)) return 16 * registers;
  if (isa<vector::ReductionOp>(op)) return 8;
  if (isa<arith::DivFOp>(op)) return 4 * registers;
  if (isa<arith::DivUIOp, arith::RemUIOp>(op)) return 3 * registers;
  return 0.4 * registers;
}

double tripsOf(scf::ForOp loop) {
  if (auto trips = loop->getAttrOfType<IntegerAttr>(kTripsAttr))
    return trips.getInt();
  APInt begin, end, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&begin)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&end)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)))
    return 1;
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

double cyclesOfPiece(func::FuncOp body) {
  // The outermost loops run over the range; one iteration counts.
  double cycles = 1;
  for (scf::ForOp loop : body.getOps<scf::ForOp>())
    cycles += cyclesOf(loop.getRegion());
  return cycles;
}

int64_t chooseGrain(double cycles, int64_t range) {
  return std::clamp<int64_t>(static_cast<int64_t>(kGrainCycles / cycles), 1,
                             std::max<int64_t>(range, 1));
}

}  // namespace partita::kernels
