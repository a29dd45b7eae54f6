// Mixtures of experts on the part of the experts that one device holds.
#ifndef PARTITA_DIALECTS_NN_SHARD_EXPERTS_H_
#define PARTITA_DIALECTS_NN_SHARD_EXPERTS_H_

#include <vector>

#include "dialects/nn/dialect.h"
#include "dialects/nn/tensor.h"

namespace partita::nn {

// Converts indices of matrices to positions among those that the device holds
// (`held`, ascending); -1 for others.
Tensor positionsIn(const std::vector<int64_t>& held, const Tensor& ids);

// Evaluates the experts, or their gradient, on a device's part of the operands.
// `rows` has the rows of each operand's dimensions that the device holds. Only
// the device with the first part of the hidden width adds the last bias.
mlir::FailureOr<llvm::SmallVector<Tensor>> evaluateExpertShard(
    ExpertsOp local, llvm::SmallVector<Tensor> operands,
    const std::vector<std::vector<std::vector<int64_t>>>& rows);
mlir::FailureOr<llvm::SmallVector<Tensor>> evaluateExpertShard(
    ExpertsGradOp local, llvm::SmallVector<Tensor> operands,
    const std::vector<std::vector<std::vector<int64_t>>>& rows);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_SHARD_EXPERTS_H_
