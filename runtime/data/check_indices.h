// Indices into tables, checked before a program is given them: it would clamp
// them, or read another row than was meant.
#ifndef PARTITA_RUNTIME_DATA_CHECK_INDICES_H_
#define PARTITA_RUNTIME_DATA_CHECK_INDICES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/data/batch_source.h"

namespace partita::data {

// InvalidArgument where an element of these rows is not below `limit`, naming
// the tensor, the row, the value and the limit. Negative ones are not looked
// at: labels have them where a position does not count. A limit of 0 is none.
absl::Status CheckIndices(const base::TensorSpec& spec, const void* data,
                          int64_t limit, const RowRange& rows = {});

// The same batches, each checked; a limit for each of the specs. The source
// itself where there is none.
std::unique_ptr<BatchSource> CheckedSource(std::unique_ptr<BatchSource> source,
                                           std::vector<int64_t> limits,
                                           const RowRange& rows = {});

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_CHECK_INDICES_H_
