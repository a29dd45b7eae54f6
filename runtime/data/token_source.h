// Sequences of tokens out of one file.
//
// The file is an array of unsigned little-endian integers without a header:
// 16-bit or 32-bit token ids (.bin), or text, each byte of which is a token.
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
  // Ids from here on are refused, with their place; 0: whatever the inputs'
  // types hold.
  int64_t vocabulary = 0;
  // The part of the file that is used: from 0 to 0.9 to train, from 0.9 to 1 to
  // evaluate.
  double from = 0;
  double to = 1;
  OrderOptions order;
  RowRange rows;
};

// A sample is a window of L + 1 tokens: the first L are the input, the last L
// the targets. With T tokens an epoch has (T - 1) / L windows that follow one
// another, in order; when shuffled, one window less (but at least one), in
// random order, from a random token below L on, so that windows begin elsewhere
// in each epoch.
//
// Among `specs`, "targets" gets the targets, "attention_mask" ones,
// "token_type_ids" zeros, "position_ids" 0 .. L-1; there must be exactly one
// other, an integer tensor [B, L], for the tokens. The file stays mapped.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenTokens(
    const std::string& path, const std::vector<base::TensorSpec>& specs,
    const TokenOptions& options);

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_TOKEN_SOURCE_H_
