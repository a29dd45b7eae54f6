// Rows of a sweep that are of Partita's own programs, priced as plans are: the
// family's model is compiled under the row's division and simulated.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_PRICE_ROW_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_PRICE_ROW_H_

#include "absl/status/statusor.h"
#include "compiler/driver/session.h"
#include "compiler/planner/published/sweep.h"

namespace partita::driver {

class RowPricer {
 public:
  // Fails where no program has such a division, with the compiler's reason.
  absl::StatusOr<planner::Prediction> price(const planner::SweepRow& row);

 private:
  Session session_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_PRICE_ROW_H_
