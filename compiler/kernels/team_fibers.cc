// Threads of a team as fibers, which meet where they exchange.
#include "compiler/kernels/team_fibers.h"

#include <ucontext.h>

#include <memory>
#include <vector>

namespace partita::kernels {
namespace {

constexpr size_t kStackBytes = 256 * 1024;

enum class State { kRunning, kExchange, kSync, kDone };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  State state = State::kRunning;
  int32_t value = 0, distance = 0, received = 0;
};

struct Team {
  ucontext_t scheduler;
  std::vector<Fiber> fibers;
  const std::function<void()>* body = nullptr;
  int current = 0;
};

Team* team = nullptr;

void start() {
  (*team->body)();
  team->fibers[team->current].state = State::kDone;
}

void wait(State state) {
  Fiber& fiber = team->fibers[team->current];
  fiber.state = state;
  swapcontext(&fiber.context, &team->scheduler);
}

const char* nameOf(State state) {
  return state == State::kExchange ? "exchanges"
         : state == State::kSync   ? "synchronises"
                                   : "has ended";
}

std::string runToEnd() {
  for (;;) {
    for (size_t i = 0; i < team->fibers.size(); ++i) {
      team->current = i;
      swapcontext(&team->scheduler, &team->fibers[i].context);
    }
    const Fiber& first = team->fibers.front();
    for (size_t i = 1; i < team->fibers.size(); ++i) {
      const Fiber& fiber = team->fibers[i];
      if (fiber.state != first.state || fiber.distance != first.distance)
        return std::string("thread 0 ") + nameOf(first.state) +
               " where thread " + std::to_string(i) + " " + nameOf(fiber.state);
    }
    if (first.state == State::kDone) return "";
    if (first.state == State::kExchange)
      for (size_t i = 0; i < team->fibers.size(); ++i) {
        Fiber& fiber = team->fibers[i];
        fiber.received = team->fibers[i ^ fiber.distance].value;
      }
  }
}

}  // namespace

std::string runTeam(int threads, const std::function<void()>& body) {
  Team here;
  here.body = &body;
  here.fibers.resize(threads);
  team = &here;
  for (Fiber& fiber : here.fibers) {
    fiber.stack.reset(new char[kStackBytes]);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &here.scheduler;
    makecontext(&fiber.context, start, 0);
  }
  std::string wrong = runToEnd();
  team = nullptr;
  return wrong;
}

// What generated code calls.
extern "C" {
__attribute__((visibility("default"))) int64_t partita_team_thread() {
  return team->current;
}

__attribute__((visibility("default"))) int32_t
partita_team_exchange(int32_t value, int32_t distance) {
  Fiber& fiber = team->fibers[team->current];
  fiber.value = value;
  fiber.distance = distance;
  wait(State::kExchange);
  return fiber.received;
}

__attribute__((visibility("default"))) void partita_team_sync() {
  wait(State::kSync);
}
}

}  // namespace partita::kernels
