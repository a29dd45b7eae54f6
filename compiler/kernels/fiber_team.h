// State of the team that runs, for the functions that its code calls.
#ifndef PARTITA_COMPILER_KERNELS_FIBER_TEAM_H_
#define PARTITA_COMPILER_KERNELS_FIBER_TEAM_H_

#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/kernels/barrier_emulation.h"
#include "compiler/kernels/warpgroup_emulation.h"
#include "compiler/kernels/written_memory.h"

namespace partita::kernels {

// A copy that has begun.
struct Copy {
  char* to;
  const char* from;
};

struct Fiber;

// A meeting of threads.
struct Meeting {
  const char* what;
  bool of_block;  // false: of a warp
  // Runs when all of the threads have come; null: nothing.
  void (*when_met)(Fiber* all, int threads) = nullptr;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  const Meeting* meeting = nullptr;  // null: it runs, or waits at a barrier
  const char* barrier = nullptr;     // it waits at this one, or null
  int parameter = 0;                 // must be equal in all threads
  void* data = nullptr;              // input and output of this thread
  std::vector<Copy> copies;
};

struct Team {
  explicit Team(int threads)
      : fibers(threads), barriers(threads), written(threads) {}
  ucontext_t scheduler;
  std::vector<Fiber> fibers;
  const std::function<void()>* body = nullptr;
  int current = 0;
  WarpgroupEmulation warpgroup;
  BarrierEmulation barriers;
  WrittenMemory written;
  std::string wrong;
};

// The running team; null outside runTeam (team_fibers.h). One thread uses it.
extern Team* team;

Fiber& here();  // the running thread

// Waits for the other threads of the meeting. They must come with the same
// `parameter`.
void wait(const Meeting& meeting, int parameter = 0, void* data = nullptr);
// Waits until the barrier's phase of this parity is over.
void waitAtBarrier(const char* barrier, int parity);
// Ends the run with the error message `wrong` of an operation. Returns if it is
// empty.
void perform(std::string wrong);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_FIBER_TEAM_H_
