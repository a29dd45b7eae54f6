// Turns exec operations into an artifact.
#ifndef PARTITA_COMPILER_EMIT_EMIT_H_
#define PARTITA_COMPILER_EMIT_EMIT_H_

#include <string>
#include <vector>

#include "llvm/ADT/StringMap.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "runtime/program/artifact.h"

namespace partita::emit {

// Integer attribute of an input of @main, written as Port.limit.
inline constexpr char kLimitAttr[] = "program.limit";

struct EmitOptions {
  std::string target = "cpu";
  std::string cpu_features;  // that the kernels need, in LLVM's spelling
  std::string summary_json;  // free form, for `partita inspect` to print
  // Estimated core cycles by the name of a kernel's code, for Kernel.cycles.
  llvm::StringMap<double> kernel_cycles;
  // Memory tables by entry; empty if there are none.
  std::vector<program::MemoryTableT> memory;
  std::string
      source_folder;  // relative weight paths in the module are relative to it
  std::string artifact_folder;  // and are stored relative to this one, where
                                // that is possible
  bool embed_weights = false;   // copy weights into the artifact
  bool states_on_host = false;  // optimizer states lie in the host's memory
  // Folder for files of optimizer states, and an upper bound on the bytes of
  // their buffers per device (0: none); empty: states are in memory.
  std::string state_folder;
  int64_t state_buffers = 0;
  // Pipelines only: the axes along which the entries are placed, three numbers
  // each (dialects/dist/numbered_axes.h), and the schedule as text.
  std::vector<int64_t> pipeline;
  std::string schedule;
  // Names in the order that users know. Ports without a name here come last.
  std::vector<std::string> inputs, outputs;
};

// Builds the artifact of a module whose memory is planned and whose launches
// have their ranges. `code` is the shared object with the kernels. Emits a
// diagnostic if an operation has no counterpart in the program, or a weight
// file cannot be read.
mlir::FailureOr<program::ArtifactParts> buildArtifact(
    mlir::ModuleOp module, std::string code, const EmitOptions& options);

}  // namespace partita::emit

#endif  // PARTITA_COMPILER_EMIT_EMIT_H_
