// Runs NVIDIA's assembler ptxas, which turns PTX into machine code (a cubin).
#ifndef PARTITA_COMPILER_KERNELS_ASSEMBLE_PTX_H_
#define PARTITA_COMPILER_KERNELS_ASSEMBLE_PTX_H_

#include <optional>
#include <string>

#include "llvm/ADT/StringRef.h"

namespace partita::kernels {

// The path of ptxas: the program that PARTITA_PTXAS names, else the one in bin
// of CUDA_HOME, CUDA_PATH or /usr/local/cuda, else the one in PATH. Nothing if
// there is none, or if PARTITA_PTXAS is "none".
std::optional<std::string> findPtxas();

struct AssembledPtx {
  bool ok = false;
  std::string code;    // the cubin
  std::string report;  // what ptxas printed with -v: registers, spills, errors
};

// Assembles for a chip such as sm_90a. Uses files in the temporary folder.
AssembledPtx assemblePtx(const std::string& ptxas, llvm::StringRef ptx,
                         llvm::StringRef chip);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_ASSEMBLE_PTX_H_
