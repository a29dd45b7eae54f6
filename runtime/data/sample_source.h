// Sources whose batches consist of samples, one per row.
#ifndef PARTITA_RUNTIME_DATA_SAMPLE_SOURCE_H_
#define PARTITA_RUNTIME_DATA_SAMPLE_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/order.h"

namespace partita::data {

// Draws samples in their order and calls the derived class to read each into
// its row of the batch.
class SampleSource : public BatchSource {
 public:
  const std::vector<base::TensorSpec>& specs() const override { return specs_; }
  absl::Status Next(Batch& batch) override;
  std::string State() const override { return order_.State(); }
  absl::Status Restore(const std::string& state) override {
    return order_.Restore(state);
  }

 protected:
  // `batch_rows` is the size of B; `rows` is within it (see CheckRows).
  SampleSource(std::vector<base::TensorSpec> specs, int64_t batch_rows,
               RowRange rows, Order order);

  // Writes sample number `sample` to row `row` of every tensor.
  virtual absl::Status ReadSample(int64_t sample, int64_t epoch, int64_t row,
                                  Batch& batch) = 0;

 private:
  const std::vector<base::TensorSpec> specs_;
  const int64_t batch_rows_;
  const RowRange rows_;
  Order order_;
};

// `rows` with its count resolved; InvalidArgument if it exceeds the batch.
absl::StatusOr<RowRange> CheckRows(RowRange rows, int64_t batch_rows);

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_SAMPLE_SOURCE_H_
