// One pass over each integer tensor that has a limit.
#include "runtime/data/check_indices.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"

namespace partita::data {
namespace {

// The first of `count` elements that is not below the limit, and its value;
// index -1 if there is none.
template <typename T>
std::pair<int64_t, int64_t> FindOutside(const void* data, int64_t first,
                                        int64_t count, int64_t limit) {
  const T* values = static_cast<const T*>(data);
  for (int64_t i = first; i < first + count; ++i)
    if (static_cast<int64_t>(values[i]) >= limit)
      return {i, static_cast<int64_t>(values[i])};
  return {-1, 0};
}

std::pair<int64_t, int64_t> FindOutside(base::DType dtype, const void* data,
                                        int64_t first, int64_t count,
                                        int64_t limit) {
  switch (dtype) {
    case base::DType::kI64:
      return FindOutside<int64_t>(data, first, count, limit);
    case base::DType::kI32:
      return FindOutside<int32_t>(data, first, count, limit);
    case base::DType::kI16:
      return FindOutside<int16_t>(data, first, count, limit);
    case base::DType::kU32:
      return FindOutside<uint32_t>(data, first, count, limit);
    case base::DType::kU16:
      return FindOutside<uint16_t>(data, first, count, limit);
    default:
      return {-1, 0};
  }
}

class Checked : public BatchSource {
 public:
  Checked(std::unique_ptr<BatchSource> source, std::vector<int64_t> limits,
          const RowRange& rows)
      : source_(std::move(source)), limits_(std::move(limits)), rows_(rows) {}

  const std::vector<base::TensorSpec>& specs() const override {
    return source_->specs();
  }
  absl::Status Next(Batch& batch) override {
    PARTITA_RETURN_IF_ERROR(source_->Next(batch));
    for (size_t i = 0; i < limits_.size(); ++i) {
      PARTITA_RETURN_IF_ERROR(
          CheckIndices(specs()[i], batch.data(i), limits_[i], rows_));
    }
    return absl::OkStatus();
  }
  std::string State() const override { return source_->State(); }
  absl::Status Restore(const std::string& state) override {
    return source_->Restore(state);
  }

 private:
  const std::unique_ptr<BatchSource> source_;
  const std::vector<int64_t> limits_;
  const RowRange rows_;
};

}  // namespace

absl::Status CheckIndices(const base::TensorSpec& spec, const void* data,
                          int64_t limit, const RowRange& rows) {
  const int64_t size = spec.shape.empty() ? 1 : spec.shape[0];
  if (limit <= 0 || size == 0) return absl::OkStatus();
  const int64_t width = *base::ElementCount(spec.shape) / size,
                begin = std::min(rows.first, size),
                count = rows.count < 0 ? size - begin
                                       : std::min(rows.count, size - begin);
  const auto [element, value] =
      FindOutside(spec.dtype, data, begin * width, count * width, limit);
  if (element < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input '", spec.name, "', row ", element / width,
                   width > 1 ? absl::StrCat(", element ", element % width) : "",
                   ": expected a number below ", limit,
                   ", the rows of the table that it "
                   "is looked up in, found ",
                   value, "; is the data made for this model's vocabulary?"));
}

std::unique_ptr<BatchSource> CheckedSource(std::unique_ptr<BatchSource> source,
                                           std::vector<int64_t> limits,
                                           const RowRange& rows) {
  if (std::none_of(limits.begin(), limits.end(),
                   [](int64_t limit) { return limit > 0; }))
    return source;
  return std::make_unique<Checked>(std::move(source), std::move(limits), rows);
}

}  // namespace partita::data
