// The list of targets that `partita compile --target` accepts, each with its
// code generator.
#ifndef PARTITA_COMPILER_DRIVER_TARGETS_H_
#define PARTITA_COMPILER_DRIVER_TARGETS_H_

#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace partita::driver {

struct CodeOptions {
  std::string architecture;  // one of TargetKind::architectures; empty: none
  std::string cpu = "host";  // an LLVM CPU name, or host
  // GPUs whose machine code goes beside the PTX, such as sm_90. None: the
  // architecture above, if the assembler ptxas is installed.
  std::optional<std::vector<std::string>> cubins;
};

// A kind of target: "cpu", or "cuda" of "cuda:sm_90".
struct TargetKind {
  llvm::StringLiteral name;
  // The architectures that may follow the name and a colon, of which one must.
  // Null: the name stands alone.
  std::vector<llvm::StringRef> (*architectures)();
  // An architecture for error messages; empty without architectures.
  llvm::StringLiteral example;

  // Generates code for the module's kernels and writes launch sizes; see
  // compiler/kernels/generate_code.h. Emits diagnostics on failure.
  mlir::FailureOr<std::string> (*generate)(mlir::ModuleOp module,
                                           const CodeOptions& options);
  // Writes launch sizes only.
  mlir::LogicalResult (*describe)(mlir::ModuleOp module,
                                  const CodeOptions& options);
  // Turns generated code into an artifact's code section.
  mlir::FailureOr<std::string> (*link)(mlir::Location loc, llvm::StringRef code,
                                       const CodeOptions& options);
  // Features that the code needs, in LLVM's notation: "+avx2,+fma".
  std::string (*features)(const CodeOptions& options);
  // The built-in cluster (planner/cluster) on whose devices a program for this
  // architecture is priced if the user names no cluster.
  llvm::StringRef (*cluster)(llvm::StringRef architecture);
  // True if libraries multiply floats of 8 bits on the architecture.
  bool (*float8)(llvm::StringRef architecture);
};

// All kinds of targets, in the order of messages.
llvm::ArrayRef<TargetKind> targetKinds();

// A kind of target with one of its architectures.
struct CompileTarget {
  const TargetKind* kind = nullptr;  // a member of targetKinds()
  std::string architecture;
};

// Returns nothing if no kind has the name or the kind has no such architecture.
std::optional<CompileTarget> findTarget(llvm::StringRef text);

// Returns an error that lists all targets if findTarget finds none, else an
// empty text.
std::string checkTarget(llvm::StringRef text);

// Returns an error if the GPUs of --cubins repeat, or if there is no assembler
// for them, else an empty text.
std::string checkCubins(llvm::ArrayRef<std::string> chips);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_TARGETS_H_
