// Errors in the waits and fences of generated kernels, which the emulation must
// find.
#ifndef PARTITA_COMPILER_KERNELS_DAMAGED_KERNELS_H_
#define PARTITA_COMPILER_KERNELS_DAMAGED_KERNELS_H_

#include <functional>
#include <ostream>
#include <string>

#include "compiler/kernels/codegen_fixture.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

inline constexpr int kAlone = 1 << 20;

struct Damage {
  std::string name;
  std::string function;  // calls of which are changed
  // Number of the call among each `period` of them, as they stand in the code;
  // -1: all of them.
  int which = -1;
  // Change of the constant or parity in the call. 0: the call is removed.
  // kAlone: only one thread calls.
  int change = 0;
  std::string message;  // when it dies; empty: results may differ
  int period = 2;
};
inline void PrintTo(const Damage& damage, std::ostream* out) {
  *out << damage.name;
}

// Expects that the code has `period` or a multiple of it of such calls.
void apply(const Damage& damage, mlir::ModuleOp module);

// Expects that the damaged kernel dies with the message or that `difference`
// describes wrong results.
void expectFound(const std::string& text, const CodegenOptions& options,
                 const Damage& damage,
                 const std::function<std::string(CompiledKernel&)>& difference);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_DAMAGED_KERNELS_H_
