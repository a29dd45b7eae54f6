// Runs the threads of a team in turns on one thread of this process, so that
// code for teams can be tested without a GPU.
#ifndef PARTITA_COMPILER_KERNELS_TEAM_FIBERS_H_
#define PARTITA_COMPILER_KERNELS_TEAM_FIBERS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace partita::kernels {

// Calls `body` once per thread of a team of `threads`, a warp or a block of
// several; inside, the functions of emit_team.h and emit_fragments.h are those
// of the team. Every thread runs until it waits for the others, every warp
// until it waits for other warps, so that what lacks a wait finds memory as
// others have not written it yet; copies happen where they are waited for,
// boxes (barrier_emulation.h) only when nobody comes further without them.
// Returns an empty text, or what is wrong: that the threads do not all come to
// the same places, that one waits for what never comes, or that they end before
// their copies. Not reentrant.
std::string runTeam(int threads, const std::function<void()>& body);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_TEAM_FIBERS_H_
