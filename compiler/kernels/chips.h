// GPUs that code can be generated for, with the limits that decide between
// kernels.
#ifndef PARTITA_COMPILER_KERNELS_CHIPS_H_
#define PARTITA_COMPILER_KERNELS_CHIPS_H_

#include <cstdint>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace partita::kernels {

struct Chip {
  llvm::StringLiteral name;  // as LLVM and ptxas spell it
  // Upper bound of a block's shared memory, in bytes.
  int64_t shared_bytes;
  bool warpgroups = false;  // has wgmma
  bool float8 = false;      // its tensor cores multiply floats of 8 bits
};

// All supported chips: PTX 8.0 chips from sm_80 on, the first with bf16.
llvm::ArrayRef<Chip> chips();
// Returns null if no chip has this name.
const Chip* findChip(llvm::StringRef name);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_CHIPS_H_
