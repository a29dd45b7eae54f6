// Sends rows to the devices that have their experts, and returns the results.
#ifndef PARTITA_COMPILER_PARTITION_ROW_EXCHANGE_H_
#define PARTITA_COMPILER_PARTITION_ROW_EXCHANGE_H_

#include "compiler/partition/local_form.h"

namespace partita::partition {

// One pair of a row and a choice travels per element of `ids`. A holder has its
// pairs in a tensor of fixed size [R, width]; RowExchange::bound gives R.
class ExpertRows {
 public:
  // `form` is of nn.experts or its gradient; `count` experts are divided as
  // `held`.
  ExpertRows(const LocalForm& form, int64_t count,
             const core::DimSharding& held);

  // Sends [..., width]: each row to the devices of all its choices. Returns [R,
  // width]; slots without a pair hold `fill`.
  mlir::Value send(mlir::Value rows, double fill = 0);
  // Sends [..., k], one element per choice. Returns [R, 1].
  mlir::Value sendChoices(mlir::Value elements, double fill = 0);
  // Returns [R, width] to the rows' devices, and sums it over the choices, as
  // `type` [..., width]. `weights` [..., k] scale the summands; null: 1.
  mlir::Value returnSum(mlir::Value rows, mlir::Value weights,
                        mlir::RankedTensorType type);
  // Returns [R, 1] to the rows' devices, as `type` [..., k].
  mlir::Value returnChoices(mlir::Value elements, mlir::RankedTensorType type);

  // The indices of this device's pairs, [R, 1], with -1 in empty slots.
  mlir::Value ids() { return sendChoices(ids_, -1); }
  // The mean share of slots with a pair: a holder gets as many as it sends.
  double share() const {
    return static_cast<double>(rows_ * choices_) /
           static_cast<double>(capacity_);
  }
  // The weights of pairs that are weighted where they come from: 1, [R, 1].
  mlir::Value ones(mlir::Type element);

 private:
  mlir::Value sendTo(mlir::Value rows, mlir::Value to, double fill);
  mlir::Value returned(mlir::Value rows);
  mlir::StringAttr why(const char* what) const;

  const LocalForm& form_;
  mlir::Value ids_;  // without rows beyond the end
  mlir::Value to_;   // [T, k]: the holders' indices along axes_
  dist::AxesAttr axes_;
  int64_t rows_ = 1, choices_ = 1;  // T, k
  int64_t capacity_ = 0;            // R
};

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_ROW_EXCHANGE_H_
