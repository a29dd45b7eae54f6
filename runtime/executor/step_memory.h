// Finds the memory ranges that each step of a pipeline stage uses.
#ifndef PARTITA_RUNTIME_EXECUTOR_STEP_MEMORY_H_
#define PARTITA_RUNTIME_EXECUTOR_STEP_MEMORY_H_

#include <vector>

#include "runtime/executor/arrivals.h"
#include "runtime/program/program_generated.h"

namespace partita::executor {

// Ranges for the steps of an entry's main, with calls flattened. The addresses
// are virtual, but ranges overlap exactly where the real ones do. Inputs,
// outputs and constants have no range. Senders and receivers are entry numbers.
std::vector<StepMemory> MemoryOfSteps(const program::Program& program,
                                      const program::Entry& entry);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_STEP_MEMORY_H_
