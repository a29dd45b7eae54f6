// Runs the threads of a team as fibers, which meet where they exchange.
#include "compiler/kernels/team_fibers.h"

#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "compiler/kernels/fiber_team.h"
#include "compiler/kernels/warp_emulation.h"

namespace partita::kernels {

Team* team = nullptr;

namespace {

constexpr size_t kStackBytes = 256 * 1024;

const Meeting kDone = {"has ended", true};

// Does not return if there is an error.
void leave() {
  while (!team->wrong.empty()) swapcontext(&here().context, &team->scheduler);
}

}  // namespace

Fiber& here() { return team->fibers[team->current]; }

void wait(const Meeting& meeting, int parameter, void* data) {
  Fiber& fiber = here();
  fiber.meeting = &meeting;
  fiber.parameter = parameter;
  fiber.data = data;
  swapcontext(&fiber.context, &team->scheduler);
}

void waitAtBarrier(const char* barrier, int parity) {
  here().barrier = barrier;
  for (;;) {
    bool is_over = false;
    team->wrong =
        team->barriers.isOver(barrier, team->current, parity, is_over);
    leave();
    if (is_over) break;
    swapcontext(&here().context, &team->scheduler);
  }
  here().barrier = nullptr;
}

void perform(std::string wrong) {
  team->wrong = std::move(wrong);
  leave();
}

namespace {

void start() {
  (*team->body)();
  here().meeting = &kDone;
}

std::string difference(int a, int b) {
  return "thread " + std::to_string(a) + " " + team->fibers[a].meeting->what +
         " where thread " + std::to_string(b) + " " +
         team->fibers[b].meeting->what;
}

bool isTogether(const Fiber& a, const Fiber& b) {
  return a.meeting == b.meeting && a.parameter == b.parameter;
}

void release(Fiber* met, int threads) {
  for (int i = 0; i < threads; ++i) met[i].meeting = nullptr;
}

// Runs the threads of a warp until they wait for other warps or at barriers.
// Returns an error message; empty on success.
std::string runWarp(int first, int threads) {
  Fiber* const warp = &team->fibers[first];
  for (;;) {
    for (int i = 0; i < threads; ++i) {
      if (warp[i].meeting) continue;
      team->current = first + i;
      swapcontext(&team->scheduler, &warp[i].context);
      if (!team->wrong.empty()) return team->wrong;
    }
    for (int i = 0; i < threads; ++i)
      if (!warp[i].meeting) return "";
    for (int i = 1; i < threads; ++i)
      if (!isTogether(warp[0], warp[i])) return difference(first, first + i);
    if (warp->meeting->of_block) return "";
    if (warp->meeting->when_met) warp->meeting->when_met(warp, threads);
    release(warp, threads);
  }
}

// Called when no thread can go on. Completes the latest box that a thread waits
// for, so that boxes arrive as late as possible. Returns an error message if
// there is none.
std::string awaitBox() {
  std::string stuck;
  for (const Fiber& fiber : team->fibers) {
    if (!fiber.barrier) continue;
    std::string wrong;
    if (team->barriers.completeLast(fiber.barrier, wrong)) return wrong;
    if (stuck.empty())
      stuck = "thread " + std::to_string(&fiber - team->fibers.data()) +
              " waits forever: " + team->barriers.describe(fiber.barrier);
  }
  return stuck;
}

// Runs until all threads have met. With `forwards`, the first warp runs before
// the others, else after them. Returns an error message; empty on success.
std::string runToMeeting(bool forwards) {
  const int threads = static_cast<int>(team->fibers.size()),
            warp = std::min(threads, kLanesOfWarp);
  const auto waits = [](const Fiber& fiber) { return !fiber.meeting; };
  for (;;) {
    const int64_t phases = team->barriers.phases();
    for (int i = 0; i < threads; i += warp) {
      std::string wrong = runWarp(forwards ? i : threads - warp - i, warp);
      if (!wrong.empty()) return wrong;
    }
    if (std::none_of(team->fibers.begin(), team->fibers.end(), waits)) break;
    if (team->barriers.phases() != phases) continue;
    std::string wrong = awaitBox();
    if (!wrong.empty()) return wrong;
  }
  for (int i = 0; i < threads; i += warp)
    if (!isTogether(team->fibers[0], team->fibers[i])) return difference(0, i);
  return "";
}

std::string runToEnd() {
  const int threads = static_cast<int>(team->fibers.size());
  for (bool forwards = true;; forwards = !forwards) {
    std::string wrong = runToMeeting(forwards);
    if (!wrong.empty()) return wrong;
    const Meeting* meeting = team->fibers[0].meeting;
    if (meeting->when_met) meeting->when_met(&team->fibers[0], threads);
    if (!team->wrong.empty()) return team->wrong;
    if (meeting != &kDone) {
      release(&team->fibers[0], threads);
      continue;
    }
    if (!team->warpgroup.isIdle())
      return "the block has ended before its products have";
    if (!team->barriers.isIdle())
      return "the block has ended before its boxes have come";
    for (int i = 0; i < threads; ++i)
      if (!team->fibers[i].copies.empty())
        return "thread " + std::to_string(i) +
               " has ended before its copies have";
    return "";
  }
}

}  // namespace

std::string runTeam(int threads, const std::function<void()>& body) {
  Team all(threads);
  all.body = &body;
  team = &all;
  for (Fiber& fiber : all.fibers) {
    fiber.stack.reset(new char[kStackBytes]);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &all.scheduler;
    makecontext(&fiber.context, start, 0);
  }
  std::string wrong = runToEnd();
  team = nullptr;
  return wrong;
}

}  // namespace partita::kernels
