// Batches of samples: the order picks samples, the derived class reads them.
#include "runtime/data/sample_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::data {

SampleSource::SampleSource(std::vector<base::TensorSpec> specs,
                           int64_t batch_rows, RowRange rows, Order order)
    : specs_(std::move(specs)),
      batch_rows_(batch_rows),
      rows_(rows),
      order_(std::move(order)) {}

absl::Status SampleSource::Next(Batch& batch) {
  PARTITA_RETURN_IF_ERROR(order_.Begin(batch_rows_));
  for (int64_t row = rows_.first; row < rows_.first + rows_.count; ++row)
    PARTITA_RETURN_IF_ERROR(
        ReadSample(order_.Sample(row), order_.epoch(), row, batch));
  order_.Finish(batch_rows_);
  return absl::OkStatus();
}

absl::StatusOr<RowRange> CheckRows(RowRange rows, int64_t batch_rows) {
  if (rows.count < 0) rows.count = batch_rows - rows.first;
  if (rows.first < 0 || rows.count < 0 || rows.first > batch_rows - rows.count)
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a range of rows within the batch of ", batch_rows, ", found ",
        rows.count, " rows from row ", rows.first));
  return rows;
}

}  // namespace partita::data
