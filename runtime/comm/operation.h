// A collective operation, and which bytes of whose input become which bytes of
// whose output. Plain data, shared by all implementations.
#ifndef PARTITA_RUNTIME_COMM_OPERATION_H_
#define PARTITA_RUNTIME_COMM_OPERATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/comm/reduction.h"

namespace partita::comm {

// What each does stands in runtime/program/program.fbs; kGather is kAllGather
// whose result only member 0 receives (the others' output is not touched).
// kTransfer is of a group of two: member 1 gets member 0's input, in the order
// in which that one ran its transfers. Member 0 waits for nobody.
enum class Kind : int8_t {
  kAllReduce = 0,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kAllSlice,
  kExchange,
  kPermute,
  kBroadcast,
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
  int64_t size = 0;    // kExchange, as the next three
  int64_t step = 0;
  int64_t offset = 0;
  double fill = 0;
  std::vector<int> sources;  // kPermute: member i receives from sources[i]
  int root = 0;              // kBroadcast
  int timeout_factor = 1;    // multiplies the communicator's timeout
  std::string name;          // for messages: what the model calls it

  int64_t InputBytes() const;
  int64_t OutputBytes() const;
};

// "all_reduce 'h.0.mlp.down' of f32[8,16]"
std::string Describe(const Operation& operation);
// Equal for equal operations; members of a group that are threads compare it.
uint64_t Fingerprint(const Operation& operation);

// Runs of `run` bytes in up to three nested loops: run (i, j, k) begins at byte
// from + i * from_strides[0] + ... of the source and at to + ... of the target.
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

// What the output of `receiver` takes from the input of `sender`, both being
// indices in a group of n; zero bytes where that is nothing. For reductions it
// is the same part of every sender's input, to be combined.
Box PieceOf(const Operation& operation, int n, int receiver, int sender);

// Parts of the receiver's output that come from nobody and hold FillOf; of
// each box only the target counts.
std::vector<Box> BlanksOf(const Operation& operation, int n, int receiver);
// The bytes of one element of what blanks hold.
std::string FillOf(const Operation& operation);

// Bytes that member `index` receives from and sends to others, as the best
// algorithm must move them.
struct Traffic {
  int64_t sent = 0;
  int64_t received = 0;
};
Traffic TrafficOf(const Operation& operation, int n, int index);

// visit(from, to) for each run of the box, in the order of the loops.
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
// Runs one after another, as a message carries them.
void PackBox(const Box& box, const void* source, void* packed);
void UnpackBox(const Box& box, const void* packed, void* target);
void FillBlanks(const Operation& operation, int n, int receiver, void* output);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_OPERATION_H_
