// Checks indices into tables before they reach a program, which would clamp
// them or read a wrong row.
#ifndef PARTITA_RUNTIME_DATA_CHECK_INDICES_H_
#define PARTITA_RUNTIME_DATA_CHECK_INDICES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/data/batch_source.h"

namespace partita::data {

// InvalidArgument if an element of these rows is not below `limit`; names the
// tensor, the row, the value and the limit. Negative elements are ignored,
// since labels use them for positions that do not count. A limit of 0 means
// none.
absl::Status CheckIndices(const base::TensorSpec& spec, const void* data,
                          int64_t limit, const RowRange& rows = {});

// A source with the same batches, each checked against one limit per spec.
// Returns `source` itself if there is no limit.
std::unique_ptr<BatchSource> CheckedSource(std::unique_ptr<BatchSource> source,
                                           std::vector<int64_t> limits,
                                           const RowRange& rows = {});

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_CHECK_INDICES_H_
