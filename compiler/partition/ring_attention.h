// Attention and its gradient with keys that travel from device to device.
#ifndef PARTITA_COMPILER_PARTITION_RING_ATTENTION_H_
#define PARTITA_COMPILER_PARTITION_RING_ATTENTION_H_

#include "compiler/partition/local_form.h"

namespace partita::partition {

// Build the local form of attention in a ring (core::LongAttention::kRing; Liu
// et al., "Ring Attention with Blockwise Transformers for Near-Infinite
// Context", 2023). Queries and keys are divided over the same n devices. In
// step s, the device of index i has the keys of device i - s; after each step
// it passes them on. Each step computes attention on the keys at hand, and the
// partial results are merged by their `lse`. Causal attention runs on halves of
// blocks where it can (zigzag_attention.h).
//
// `operands` are the form's operands without undefined rows. The operations
// have neither sinks nor blocks (core::CanRing).
llvm::SmallVector<mlir::Value> buildRing(nn::AttentionOp op,
                                         const LocalForm& form,
                                         mlir::ValueRange operands);
// The gradients of keys, values and their bias travel with them, in f32, and
// arrive home after n steps. `op` must have `lse`.
llvm::SmallVector<mlir::Value> buildRing(nn::AttentionGradOp op,
                                         const LocalForm& form,
                                         mlir::ValueRange operands);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_RING_ATTENTION_H_
