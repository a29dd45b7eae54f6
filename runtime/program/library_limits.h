// GPU memory of libraries while they run, in addition to the program's own
// plan. The runtime grants no more, and the compiler counts it.
#ifndef PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_
#define PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace partita::program {

// Workspace in bytes, shared by all products or all convolutions, since they
// run one after another.
inline constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;
inline constexpr int64_t kConvolutionWorkspaceBytes = int64_t{128} << 20;
// The plans of cuDNN 9.19 for sm_80 and sm_90 need 256 bytes at most.
inline constexpr int64_t kAttentionWorkspaceBytes = int64_t{1} << 20;

// Rows of a factor that one thread sums if the library does not sum a factor of
// a product. Each thread writes one f32 to the scratch.
inline constexpr int64_t kFactorSumRows = 64;

// Workspace of a convolution whose input, weight and output have `tensor_bytes`
// together. In f32 the plans that cuDNN 9.19 prefers copy all of them to
// another layout: 23 of 156 convolutions of CoAtNet's sizes prefer more than
// 128 MiB.
inline constexpr int64_t ConvolutionWorkspaceBytes(int64_t tensor_bytes) {
  return std::max(kConvolutionWorkspaceBytes,
                  tensor_bytes + (int64_t{16} << 20));
}

// Send slots per receiver in a pipeline. A device copies sends into them in
// turn; each is as large as the largest tensor sent through it. The runtime
// uses more slots if devices would otherwise wait for each other in a cycle.
inline constexpr int64_t kTransferSlots = 2;
inline constexpr int64_t kTransferSlotAlignment = 256;

// Buffers that NCCL allocates for a group of GPUs when it is first used. An
// estimate from its source (2.28) for GPUs with NVLink: 24 channels, each with
// a buffer per protocol (4 MiB, 512 KiB and 4,915,200 bytes). Other machines
// need less, algorithms other than rings more.
inline constexpr int64_t kGroupBytes =
    24 * ((int64_t{4} << 20) + (int64_t{512} << 10) + 4915200);

// The properties of a collective among GPUs that decide which parts of its
// tensors must be packed because they are not contiguous.
struct PackedCollective {
  enum class Kind {
    kOther,
    kReduceScatter,
    kAllGather,
    kExchange,
    kAllToAll,
    kRows
  };
  Kind kind = Kind::kOther;
  std::vector<int64_t> input_shape, output_shape;
  int64_t dim = 0;
  int64_t step = 0;          // of an exchange
  int64_t destinations = 0;  // of rows
  int64_t element_bytes = 0;
  int64_t devices = 1;  // of the group
};

// Upper bound of the scratch in which a device packs these parts.
int64_t PackingBytes(const PackedCollective& collective);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_LIBRARY_LIMITS_H_
