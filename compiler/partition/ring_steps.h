// Shared by the forms of attention in a ring: the devices of the ring, and the
// merging of partial results.
#ifndef PARTITA_COMPILER_PARTITION_RING_STEPS_H_
#define PARTITA_COMPILER_PARTITION_RING_STEPS_H_

#include "compiler/partition/local_form.h"
#include "dialects/nn/math_builder.h"

namespace partita::partition {

inline constexpr int kRows = 2;  // dimension of the sequence in q, k and v

// The n devices over which `form` divides the queries. In step s, the device of
// index i has the keys of device i - s. `form` must outlive this object.
class RingSteps {
 public:
  explicit RingSteps(const LocalForm& form)
      : form_(form), rows_(form.sharding.operands[0].dims[kRows]) {}

  int64_t devices() const { return core::SizeOf(rows_.axes); }
  // Rows of the whole sequence, and of a device's block.
  int64_t size() const {
    return form_.globalShape(form_.op->getOperand(0))[kRows];
  }
  int64_t block() const { return core::BlockOf(size(), rows_); }
  // The dimension of an operand that is divided as queries are; -1 if none is.
  int64_t dimOf(int operand) const;
  // The same for a result.
  int64_t dimOfResult(int result) const;

  // Builds this device's index, a scalar tensor<i64>.
  mlir::Value index() const;
  // Builds the index of the device whose keys are here in step `step`.
  mlir::Value owner(int64_t step) const;
  // Builds `x` of the device before this one.
  mlir::Value passed(mlir::Value x) const;
  dist::AxesAttr axes() const;

 private:
  const LocalForm& form_;
  const core::DimSharding& rows_;
};

// A partial result of attention: [B, N, L, h] and [B, N, L], both of f32 or
// wider.
struct Partial {
  mlir::Value result, lse;
};
// Builds the result over the keys of both. Rows that see no key at all stay 0.
Partial merge(nn::MathBuilder& math, const Partial& a, const Partial& b);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_RING_STEPS_H_
