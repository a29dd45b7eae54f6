// One launch over many tensors.
#ifndef PARTITA_COMPILER_EMIT_JOIN_LAUNCHES_H_
#define PARTITA_COMPILER_EMIT_JOIN_LAUNCHES_H_

#include <cstdint>
#include <vector>

#include "runtime/program/artifact.h"

namespace partita::emit {

// Makes one launch with several ranges (program.fbs) of launches of one kernel
// that follow each other and of which none writes what another reads or
// writes: the updates of parameters. `memory` says, for each argument of the
// function, which argument has the same memory: itself, or the parameter that
// a result updates; others have memory of their own.
void joinLaunches(program::FunctionT& function,
                  const std::vector<int64_t>& memory);

}  // namespace partita::emit

#endif  // PARTITA_COMPILER_EMIT_JOIN_LAUNCHES_H_
