// Describes a collective operation as plain data, and maps bytes of every
// member's input to bytes of every member's output. Shared by all
// implementations.
#ifndef PARTITA_RUNTIME_COMM_OPERATION_H_
#define PARTITA_RUNTIME_COMM_OPERATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/comm/reduction.h"

namespace partita::comm {

// runtime/program/program.fbs defines what each kind does. kGather is
// kAllGather with a result on member 0 only (the others' output is not
// touched). kTransfer has a group of two: member 1 gets member 0's input, in
// the order in which member 0 ran its transfers. Member 0 does not wait.
// Communicator::RunRows runs kSendRows and kReturnRows.
enum class Kind : int8_t {
  kAllReduce = 0,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kAllSlice,
  kExchange,
  kPermute,
  kBroadcast,
  kSendRows,
  kReturnRows,
  kGather,
  kTransfer
};
const char* NameOf(Kind kind);

struct Operation {
  Kind kind = Kind::kAllReduce;
  Reduction reduction = Reduction::kSum;
  base::DType dtype = base::DType::kF32;
  std::vector<int64_t> input_shape;
  std::vector<int64_t> output_shape;
  int dim = -1;
  int other_dim = -1;  // kAllToAll
  // kExchange, as are step, offset and fill. kSendRows and kReturnRows: the
  // number of destinations.
  int64_t size = 0;
  int64_t step = 0;
  int64_t offset = 0;
  double fill = 0;           // kSendRows, too
  std::vector<int> sources;  // kPermute: member i receives from sources[i]
  int root = 0;              // kBroadcast
  int timeout_factor = 1;    // multiplies the communicator's timeout
  std::string name;          // for messages: the model's name of the operation

  int64_t InputBytes() const;
  int64_t OutputBytes() const;
};

// "all_reduce 'h.0.mlp.down' of f32[8,16]"
std::string Describe(const Operation& operation);
// Equal for equal operations. Threads of one group compare fingerprints.
uint64_t Fingerprint(const Operation& operation);

// Runs of `run` bytes in up to three nested loops. Run (i, j, k) begins at
// source byte from + i * from_strides[0] + ... and at target byte to + ...
struct Box {
  int64_t counts[3] = {1, 1, 1};
  int64_t from_strides[3] = {0, 0, 0};
  int64_t to_strides[3] = {0, 0, 0};
  int64_t run = 0;
  int64_t from = 0;
  int64_t to = 0;

  int64_t Bytes() const { return counts[0] * counts[1] * counts[2] * run; }
  bool IsOneRun() const {
    return counts[0] == 1 && counts[1] == 1 && counts[2] == 1;
  }
};

// The part of the output of `receiver` that comes from the input of `sender`;
// both are indices in a group of n. Zero bytes if there is none. For
// reductions, it is the same part of every sender's input, to be combined.
Box PieceOf(const Operation& operation, int n, int receiver, int sender);

// Parts of the receiver's output that no sender fills and that hold FillOf;
// only the target side of each box counts.
std::vector<Box> BlanksOf(const Operation& operation, int n, int receiver);
// Bytes of one fill element.
std::string FillOf(const Operation& operation);

// True for kSendRows and kReturnRows, whose pieces depend on numbers that are
// known at run time only (rows.h).
bool MovesRows(Kind kind);

// Bytes that member `index` sends to and receives from others with the best
// algorithm. Rows are counted as if all members received equally many.
struct Traffic {
  int64_t sent = 0;
  int64_t received = 0;
};
Traffic TrafficOf(const Operation& operation, int n, int index);

// Calls visit(from, to) for each run of the box, in loop order.
template <typename Visit>
void ForEachRun(const Box& box, const Visit& visit) {
  if (box.run == 0) return;
  for (int64_t i = 0; i < box.counts[0]; ++i) {
    for (int64_t j = 0; j < box.counts[1]; ++j) {
      int64_t from =
          box.from + i * box.from_strides[0] + j * box.from_strides[1];
      int64_t to = box.to + i * box.to_strides[0] + j * box.to_strides[1];
      for (int64_t k = 0; k < box.counts[2]; ++k) {
        visit(from, to);
        from += box.from_strides[2];
        to += box.to_strides[2];
      }
    }
  }
}

void CopyBox(const Box& box, const void* source, void* target);
// Packs runs one after another, as a message carries them.
void PackBox(const Box& box, const void* source, void* packed);
void UnpackBox(const Box& box, const void* packed, void* target);
void FillBlanks(const Operation& operation, int n, int receiver, void* output);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_OPERATION_H_
