// Momenta exchanged in one bit.
#ifndef PARTITA_COMPILER_SHARDING_COMPRESS_MOMENTA_H_
#define PARTITA_COMPILER_SHARDING_COMPRESS_MOMENTA_H_

#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Where the n devices along the axes of B have gradients of their own rows,
// whose mean is the gradient, the momentum (`nn.one_bit`) is exchanged in its
// stead, as the sign of each element and a scale for each n-th of them, and
// what that leaves out is added the next time. With the parameter's elements as
// n chunks, filled up to words of 32 bits:
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
// `<parameter>/server_error`, [n, chunk], a row for each device, zero at first.
// Without axes of B nothing changes. Tang et al., "1-bit Adam", 2021; the scale
// is that of Karimireddy et al., 2019. Fails, with a diagnostic, beside ZeRO.
mlir::LogicalResult compressMomenta(mlir::ModuleOp module,
                                    const plan::Plan& plan);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_COMPRESS_MOMENTA_H_
