// Causal attention in a ring with the same work on every device.
#ifndef PARTITA_COMPILER_PARTITION_ZIGZAG_ATTENTION_H_
#define PARTITA_COMPILER_PARTITION_ZIGZAG_ATTENTION_H_

#include "compiler/partition/local_form.h"

namespace partita::partition {

// In a ring over whole blocks, the last device's queries see all keys and the
// first device's only their own, so that all wait for the last. Here the
// sequence is cut into 2n halves of blocks, and a device computes with a pair
// of halves p and 2n - 1 - p (zig-zag; also in Llama 3's and Megatron-LM's
// context parallelism). Half a block of each tensor moves before the ring, and
// of each result after it (half_exchange.h).
//
// A step has four products of query and key halves:
// - the upper query half with the lower key half is always visible;
// - the lower query half with the upper key half never is;
// - of the other two, one is visible and one hidden, which depends on the
//   device. Operands of the visible one are selected, and the other is left
//   out. In the first step, both are causal triangles.
//
// True if attention is causal with offset 0, no `shift`, and no window of at
// most a block (the work is even then), the sequence divides into 2n halves,
// and no bias differs between queries. The queries must be divided.
bool canZigzag(nn::AttentionOp op, const LocalForm& form);
bool canZigzag(nn::AttentionGradOp op, const LocalForm& form);

// The same as buildRing, for operations with canZigzag.
llvm::SmallVector<mlir::Value> buildZigzag(nn::AttentionOp op,
                                           const LocalForm& form,
                                           mlir::ValueRange operands);
llvm::SmallVector<mlir::Value> buildZigzag(nn::AttentionGradOp op,
                                           const LocalForm& form,
                                           mlir::ValueRange operands);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_ZIGZAG_ATTENTION_H_
