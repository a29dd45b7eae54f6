// Programs to be timed.
#ifndef PARTITA_COMPILER_MEASURE_PROBE_PROGRAM_H_
#define PARTITA_COMPILER_MEASURE_PROBE_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/planner/cluster/measured.h"
#include "runtime/program/artifact.h"

namespace partita::measure {

// Operations one after the other, which every device executes on memory of its
// own. Operands follow each other through 32 MB, so that an operation finds
// none of them in a small cache. Each Add returns what a profile calls the
// operation, up to what the device adds in parentheses.
class ProbeProgram {
 public:
  // Of `devices`, of which `group` next to each other meet in collectives.
  ProbeProgram(program::DType dtype, int devices, int group);

  std::string AddProduct(planner::ProductForm form, int64_t m, int64_t n,
                         int64_t k);
  // Of one square image, channels last, to as many places. A depthwise one has
  // as many channels on both sides.
  std::string AddConvolution(program::ConvDirection direction,
                             planner::ConvKind kind, int64_t in, int64_t out,
                             int64_t side);
  // all_reduce, all_gather, reduce_scatter, all_to_all or exchange, whose
  // larger side has about so many elements: `elements` afterwards. Devices meet
  // before it, so that none waits in it for what others did before.
  std::string AddCollective(program::CollectiveKind kind, int64_t& elements);

  // What was added, as a file. An error is a bug of ours, or the disk's.
  absl::Status Write(const std::string& path) const;

 private:
  void Meet();
  program::Buffer Input(int64_t elements);
  program::Buffer Output(int64_t elements);
  program::Buffer Next(int64_t elements, int64_t& position, int64_t begin);
  std::string Append(program::OperationUnion operation,
                     std::vector<program::Buffer> operands,
                     const std::string& label);

  const program::DType dtype_;
  const int64_t element_bytes_;
  const int64_t group_;
  program::ProgramT program_;
  program::FunctionT* main_;
  int64_t inputs_ = 0, outputs_ = 0;  // bytes of the regions that were used
};

// Writes a compiled program again so that its launches find nothing in caches:
// before each of main's, a block that is larger than they are is copied. Errors
// are the disk's.
absl::Status PushOutCaches(const std::string& path);

// Two devices that send each other messages of so many f32 elements, one of
// them waiting at any time. `sends` and `receives` are what the first one's
// profile calls them.
struct PingPong {
  std::vector<std::string> sends, receives;
  absl::Status Write(const std::string& path) const;

  explicit PingPong(const std::vector<int64_t>& elements);

 private:
  program::ProgramT program_;
};

}  // namespace partita::measure

#endif  // PARTITA_COMPILER_MEASURE_PROBE_PROGRAM_H_
