// Finds how a program uses its parameters.
#ifndef PARTITA_RUNTIME_EXECUTOR_USES_H_
#define PARTITA_RUNTIME_EXECUTOR_USES_H_

#include <vector>

#include "runtime/executor/weights.h"
#include "runtime/program/program_generated.h"

namespace partita::executor {

// One entry per parameter of the program, over the entry's init and main.
std::vector<Weights::Use> FindUses(const program::Program& program,
                                   const program::Entry& entry);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_USES_H_
