// Rows that travel to the members that numbers name, and back (kSendRows and
// kReturnRows). Destination p is that of row p / k of the input, where k is the
// number of destinations per row.
#ifndef PARTITA_RUNTIME_COMM_ROWS_H_
#define PARTITA_RUNTIME_COMM_ROWS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/operation.h"

namespace partita::comm {

// A member's operands.
struct RowOperands {
  const char* input = nullptr;
  const int64_t* to = nullptr;
};

// Bytes of one row, of both operations.
int64_t RowBytes(const Operation& operation);
// Rows that fit into the holder's tensor: the output of kSendRows, the input of
// kReturnRows.
int64_t RowCapacity(const Operation& operation);

// The number of rows that each of n members gets from a member with these
// destinations.
std::vector<int64_t> CountRows(const Operation& operation, int n,
                               const int64_t* to);

// Rows of each member, one member's after another's: packed at home, and in the
// holder's tensor.
struct RowParts {
  std::vector<int64_t> first, bytes;  // by member
  int64_t rows = 0;
};
RowParts PartsOf(const Operation& operation,
                 const std::vector<int64_t>& counts);

// For kSendRows: the row of the input for each packed row. For kReturnRows: the
// packed row for each row of the output; -1 if nothing was sent.
std::vector<int64_t> RowSources(const Operation& operation, int n,
                                const int64_t* to);

// ResourceExhausted, with the factor that would be enough, if `rows` rows for
// member `index` do not fit.
absl::Status CheckCapacity(const Operation& operation, int index, int64_t rows);

// For members that read each other's memory: kSendRows and kReturnRows for
// member `index`. Rows beyond the capacity are counted only. Returns the number
// of rows that the member receives in kSendRows.
int64_t CollectRows(const Operation& operation,
                    const std::vector<RowOperands>& members, int index,
                    char* output);

// How members send each other messages. Calls return at once; memory is in use
// until `finish`.
struct MemberChannel {
  std::function<absl::Status(const char* data, int64_t bytes, int member)> send;
  std::function<absl::Status(char* data, int64_t bytes, int member)> receive;
  std::function<absl::Status()> finish;
};
// For members that send messages: kSendRows and kReturnRows for member `index`
// of n. Members exchange their counts first, then rows. `scratch` has room for
// one row per destination.
absl::Status ExchangeRows(const Operation& operation, int n, int index,
                          const RowOperands& own, char* output, char* scratch,
                          const MemberChannel& channel);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_ROWS_H_
