// Runs the threads of a team in turns on one thread of this process, so that
// code for teams can be tested without a GPU.
#ifndef PARTITA_COMPILER_KERNELS_TEAM_FIBERS_H_
#define PARTITA_COMPILER_KERNELS_TEAM_FIBERS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace partita::kernels {

// Calls `body` once per thread of a team of `threads`: a warp, or a block of
// several. Inside, the functions of emit_team.h and emit_fragments.h act on
// this team.
//
// A thread runs until it waits for the others, and a warp until it waits for
// other warps, so code that lacks a wait finds memory that others have not
// written yet. Copies happen when they are waited for. Boxes
// (barrier_emulation.h) arrive only when no thread can go on without them.
//
// Returns an error message: threads do not all come to the same places, a wait
// never ends, or threads end before their copies. Empty on success. Not
// reentrant.
std::string runTeam(int threads, const std::function<void()>& body);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_TEAM_FIBERS_H_
