// Programs whose operations are timed.
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

// Operations one after the other, which every device executes on its own
// memory. Operands follow each other through 32 MiB, so that small caches hold
// none of them. Each Add function returns the name of the operation in a
// profile, without the part in parentheses that the device adds.
class ProbeProgram {
 public:
  // A program for `devices`, in groups of `group` adjacent ones that share
  // collectives.
  ProbeProgram(program::DType dtype, int devices, int group);

  std::string AddProduct(planner::ProductForm form, int64_t m, int64_t n,
                         int64_t k);
  // Adds a convolution of one square image, channels last, whose result has the
  // size of the image. A depthwise one has `in` channels on both sides.
  std::string AddConvolution(program::ConvDirection direction,
                             planner::ConvKind kind, int64_t in, int64_t out,
                             int64_t side);
  // Adds an all_reduce, all_gather, reduce_scatter, all_to_all or exchange,
  // whose larger side has about `elements` elements; sets `elements` to the
  // exact number. Devices synchronize before it, so that none waits in it for
  // earlier work of others.
  std::string AddCollective(program::CollectiveKind kind, int64_t& elements);

  // Writes the program to a file. An error is a bug of ours, or of the disk.
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
  int64_t inputs_ = 0, outputs_ = 0;  // next positions in the regions, in bytes
};

// Writes a compiled program again so that its launches start with cold caches:
// before each launch in main, a block larger than the caches is copied. Returns
// errors of the disk.
absl::Status EvictCaches(const std::string& path);

// Two devices that send each other messages with these numbers of f32 elements.
// One of them waits at any time. `sends` and `receives` are the names in the
// first device's profile.
struct PingPong {
  std::vector<std::string> sends, receives;
  absl::Status Write(const std::string& path) const;

  explicit PingPong(const std::vector<int64_t>& elements);

 private:
  program::ProgramT program_;
};

}  // namespace partita::measure

#endif  // PARTITA_COMPILER_MEASURE_PROBE_PROGRAM_H_
