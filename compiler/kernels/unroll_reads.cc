#include "compiler/kernels/unroll_reads.h"

#include "compiler/kernels/estimate_work.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr int64_t kTurns = 4;
// Larger loops have enough work to hide reads, and need their registers.
constexpr int64_t kMostOperations = 64;

bool isShortAndReads(scf::ForOp loop) {
  bool reads = false;
  int64_t operations = 0;
  for (Operation& op : *loop.getBody()) {
    if (op.getNumRegions() > 0) return false;
    if (!isa<arith::ConstantOp>(op)) ++operations;
    reads |= isa<vector::LoadOp, memref::LoadOp>(op);
  }
  return reads && operations <= kMostOperations;
}

}  // namespace

void unrollReads(func::FuncOp body) {
  SmallVector<scf::ForOp> loops;
  body.walk([&](scf::ForOp loop) {
    const std::optional<APInt> trips = loop.getStaticTripCount();
    if (trips && trips->getSExtValue() >= 2 * kTurns && isShortAndReads(loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    loop->removeAttr(kTripsAttr);  // the number of iterations has changed
    const bool unrolled = succeeded(loopUnrollByFactor(loop, kTurns));
    assert(unrolled && "its number of turns is known");
    (void)unrolled;
  }
}

}  // namespace partita::kernels
