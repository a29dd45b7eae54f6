// Exchanges momenta, and sums of updates, with one bit per element.
#ifndef PARTITA_COMPILER_SHARDING_COMPRESS_MOMENTA_H_
#define PARTITA_COMPILER_SHARDING_COMPRESS_MOMENTA_H_

#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Each of the n devices along the axes of B has the gradient of its own rows;
// their mean is the gradient. Instead of gradients, devices exchange momenta
// (`nn.one_bit`): the sign of each element, and one scale per chunk. The
// compression error is added in the next step. The parameter's elements form n
// chunks, padded to words of 32 bits:
//
//   device i:  x = beta momentum + (1 - beta) gradient + worker error
//              sends chunk k to device k: signs of x, scale = mean |x|
//              worker error = x - scale sign(x)
//   device k:  y = mean over i of scale sign(x) + server error
//              sends to all: signs of y, scale = mean |y|
//              server error = y - scale sign(y)
//   all:       momentum = scale sign(y)
//
// New states are `<parameter>/worker_error`, [n, n chunk], and
// `<parameter>/server_error`, [n, chunk]: one row per device, initially zero.
//
// 0/1 Adam's sums (`nn.one_bit_mean`) are exchanged in the same way, with
// x = sum + worker error; the states are `sum_worker_error` and
// `sum_server_error`.
// Its states that differ between devices get one row per device: own_states.h.
//
// If B has no axes, nothing changes. Fails with a diagnostic if ZeRO or a
// pipeline is used too. Tang et al., "1-bit Adam", 2021; the scale is that of
// Karimireddy et al., 2019.
mlir::LogicalResult compressMomenta(mlir::ModuleOp module,
                                    const plan::Plan& plan);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_COMPRESS_MOMENTA_H_
