// GPUs that code is generated for, and what of them decides between kernels.
#ifndef PARTITA_COMPILER_KERNELS_CHIPS_H_
#define PARTITA_COMPILER_KERNELS_CHIPS_H_

#include <cstdint>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace partita::kernels {

struct Chip {
  llvm::StringLiteral name;  // as LLVM and ptxas have it
  // Of shared memory, in bytes, the most that a block can ask for.
  int64_t shared_bytes;
  bool warpgroups = false;  // has wgmma
};

// All of them: those that PTX 8.0 knows, from the first with bf16 on.
llvm::ArrayRef<Chip> chips();
// Null: there is none of that name.
const Chip* findChip(llvm::StringRef name);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_CHIPS_H_
