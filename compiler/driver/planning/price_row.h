// Prices the rows of a sweep that describe Partita's own programs, like plans:
// compiles the family's model under the row's division and simulates it.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_PRICE_ROW_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_PRICE_ROW_H_

#include "absl/status/statusor.h"
#include "compiler/driver/session.h"
#include "compiler/planner/published/sweep.h"

namespace partita::driver {

class RowPricer {
 public:
  // Fails with the compiler's reason if no program has such a division.
  absl::StatusOr<planner::Prediction> price(const planner::SweepRow& row);

 private:
  Session session_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_PRICE_ROW_H_
