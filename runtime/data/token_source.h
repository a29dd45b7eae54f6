// Sequences of tokens from one file.
//
// The file is an array of unsigned little-endian integers without a header:
// token ids of 16 or 32 bits (.bin), or text with one token per byte.
#ifndef PARTITA_RUNTIME_DATA_TOKEN_SOURCE_H_
#define PARTITA_RUNTIME_DATA_TOKEN_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/order.h"

namespace partita::data {

enum class TokenFormat { kBytes, kU16, kU32 };

struct TokenOptions {
  TokenFormat format = TokenFormat::kU16;
  // Exclusive upper bound for ids; an error names the place of a larger one. 0:
  // the range of the inputs' types.
  int64_t vocabulary = 0;
  // The part of the file to use, e.g. from 0 to 0.9 to train and from 0.9 to 1
  // to evaluate.
  double from = 0;
  double to = 1;
  OrderOptions order;
  RowRange rows;
};

// A sample is a window of L + 1 tokens: the first L are the input, the last L
// the targets. With T tokens, an epoch has (T - 1) / L consecutive windows in
// order. When shuffled, it has one window less (but at least one), in random
// order, from a random first token below L on, so that windows begin at
// different tokens in each epoch.
//
// Among `specs`, "targets" gets the targets, "attention_mask" ones,
// "token_type_ids" zeros, "position_ids" 0 .. L-1. There must be exactly one
// other, an integer tensor [B, L], for the tokens. The file stays mapped.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenTokens(
    const std::string& path, const std::vector<base::TensorSpec>& specs,
    const TokenOptions& options);

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_TOKEN_SOURCE_H_
