// Wraps generated functions into GPU kernels, whose teams take the items of the
// range in turn.
#ifndef PARTITA_COMPILER_KERNELS_WRAP_KERNELS_H_
#define PARTITA_COMPILER_KERNELS_WRAP_KERNELS_H_

#include <cstdint>

#include "compiler/kernels/codegen.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace partita::kernels {

// Shared memory of a block without a request for more.
inline constexpr int64_t kSharedBytes = 48 * 1024;

// The teams of a kernel, and the place of their scratch.
struct BlockLayout {
  int64_t team;                 // threads that compute an item
  int64_t teams;                // working teams per block
  bool shared = false;          // scratch lies in shared memory
  bool dynamic_shared = false;  // the launch must request shared memory
  int64_t blocks;
};

// `most_shared` is the shared memory that a block may request.
BlockLayout layOut(const KernelCode& code, int64_t most_shared);

// Device memory for the scratch of all teams, in bytes.
int64_t scratchInMemory(const KernelCode& code, const BlockLayout& layout);

// Makes the kernel; `code`'s function becomes its inner part. The kernel's
// parameters are those of PtxKernel, or a table of pieces if
// `code.takes_pieces`.
void wrapKernel(llvm::Module& module, const KernelCode& code,
                const BlockLayout& layout);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_WRAP_KERNELS_H_
