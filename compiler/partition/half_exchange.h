// Pairs of half blocks of a sequence (zig-zag).
#ifndef PARTITA_COMPILER_PARTITION_HALF_EXCHANGE_H_
#define PARTITA_COMPILER_PARTITION_HALF_EXCHANGE_H_

#include <array>
#include <string>

#include "compiler/partition/ring_steps.h"

namespace partita::partition {

// A device's pair of halves of a tensor, in the order of the sequence.
using Halves = std::array<mlir::Value, 2>;

// Moves half blocks between the n devices of a ring, so that each has a pair p
// and 2n - 1 - p of the 2n halves of a sequence. Device i keeps the first half
// of its block, number 2i, and gets number 2n - 1 - 2i, the second half of
// device n - 1 - i. `form` and `steps` must outlive this object; blocks must be
// full and of even length.
class HalfExchange {
 public:
  HalfExchange(const LocalForm& form, const RingSteps& steps)
      : form_(form), steps_(steps), half_(steps.block() / 2) {}

  // Builds this device's pair. `block` is its block along dimension `dim`.
  Halves split(mlir::Value block, int64_t dim) const;
  // Builds this device's block of its pair: the inverse.
  mlir::Value join(const Halves& pair, int64_t dim) const;
  // Builds the number in the sequence of a half of the device with index
  // `device`, a scalar tensor<i64>; half 0 is the lower of its pair.
  mlir::Value number(mlir::Value device, int half) const;

  // Returns the type of a half of a block of `type`.
  mlir::RankedTensorType typeOfHalf(mlir::RankedTensorType type,
                                    int64_t dim) const;
  int64_t rowsOfHalf() const { return half_; }

 private:
  mlir::Value isLow(mlir::Value device) const;
  mlir::Value rows(mlir::Value x, int64_t dim, int64_t first) const;
  mlir::Value mirrored(mlir::Value x, int64_t dim,
                       const std::string& why) const;
  Halves ordered(const Halves& halves) const;

  const LocalForm& form_;
  const RingSteps& steps_;
  const int64_t half_;
};

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_HALF_EXCHANGE_H_
