// Which memory the steps of a stage use, whoever runs it.
#ifndef PARTITA_RUNTIME_EXECUTOR_STEP_MEMORY_H_
#define PARTITA_RUNTIME_EXECUTOR_STEP_MEMORY_H_

#include <vector>

#include "runtime/executor/arrivals.h"
#include "runtime/program/program_generated.h"

namespace partita::executor {

// Of the steps of an entry's main, calls flattened. Addresses are none that a
// device knows, but overlap where those do; inputs, outputs and constants have
// none. Senders and receivers are entries.
std::vector<StepMemory> MemoryOfSteps(const program::Program& program,
                                      const program::Entry& entry);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_STEP_MEMORY_H_
