// Names of kernels and layers for people.
#ifndef PARTITA_RUNTIME_PROGRAM_LABELS_H_
#define PARTITA_RUNTIME_PROGRAM_LABELS_H_

#include <string>

#include "runtime/program/program_generated.h"

namespace partita::program {

// Returns the label of a launch's kernel, or the symbol of a kernel without
// one. Only for programs that passed ValidateProgram.
inline const flatbuffers::String& KernelLabel(const Program& program,
                                              const Launch& launch) {
  const Kernel& kernel =
      *program.kernels()->Get(static_cast<unsigned>(launch.kernel()));
  return kernel.label() == nullptr ? *kernel.name() : *kernel.label();
}

// Returns the path of an instruction's module in a call of its function that
// belongs to the layer `call`; `call` is empty in main. Empty if unknown.
inline std::string LayerPath(const std::string& call,
                             const Instruction& instruction) {
  const std::string own =
      instruction.layer() == nullptr ? "" : instruction.layer()->str();
  if (own.empty() || own[0] != '.') return own;
  if (own.size() == 1) return call;
  return call.empty() ? own.substr(1) : call + own;
}

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_LABELS_H_
