// Threads of a team as fibers, which meet where they exchange.
#include "compiler/kernels/team_fibers.h"

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "compiler/kernels/warp_emulation.h"

namespace partita::kernels {
namespace {

constexpr size_t kStackBytes = 256 * 1024;

struct Copy {
  char* to;
  const char* from;
};

struct Fiber;

// What threads come together for.
struct Meeting {
  const char* what;
  bool of_block;  // otherwise of a warp
  // What happens when all of a warp have come; null: nothing.
  void (*happens)(Fiber* warp, int threads) = nullptr;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  const Meeting* meeting = nullptr;
  int parameter = 0;     // on which all agree
  void* data = nullptr;  // what this one brings and gets
  std::vector<Copy> copies;
};

const Meeting kDone = {"has ended", true};

struct Team {
  ucontext_t scheduler;
  std::vector<Fiber> fibers;
  const std::function<void()>* body = nullptr;
  int current = 0;
};

Team* team = nullptr;

Fiber& here() { return team->fibers[team->current]; }

void wait(const Meeting& meeting, int parameter = 0, void* data = nullptr) {
  Fiber& fiber = here();
  fiber.meeting = &meeting;
  fiber.parameter = parameter;
  fiber.data = data;
  swapcontext(&fiber.context, &team->scheduler);
}

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

// Runs the threads of a warp until they wait for other warps. What is wrong.
std::string runWarp(int first, int threads) {
  for (;;) {
    for (int i = first; i < first + threads; ++i) {
      team->current = i;
      swapcontext(&team->scheduler, &team->fibers[i].context);
    }
    Fiber* warp = &team->fibers[first];
    for (int i = 1; i < threads; ++i)
      if (!isTogether(warp[0], warp[i])) return difference(first, first + i);
    if (warp->meeting->of_block) return "";
    if (warp->meeting->happens) warp->meeting->happens(warp, threads);
  }
}

std::string runToEnd() {
  const int threads = static_cast<int>(team->fibers.size()),
            warp = std::min(threads, kLanesOfWarp);
  // Between two meetings of all, the first warp is ahead of the others or
  // behind them.
  for (bool forwards = true;; forwards = !forwards) {
    for (int i = 0; i < threads; i += warp) {
      std::string wrong = runWarp(forwards ? i : threads - warp - i, warp);
      if (!wrong.empty()) return wrong;
    }
    for (int i = 0; i < threads; i += warp)
      if (!isTogether(team->fibers[0], team->fibers[i]))
        return difference(0, i);
    if (team->fibers[0].meeting != &kDone) continue;
    for (int i = 0; i < threads; ++i)
      if (!team->fibers[i].copies.empty())
        return "thread " + std::to_string(i) +
               " has ended before its copies have";
    return "";
  }
}

struct Exchange {
  int32_t value, received;
};

void exchange(Fiber* warp, int threads) {
  for (int i = 0; i < threads; ++i)
    static_cast<Exchange*>(warp[i].data)->received =
        static_cast<Exchange*>(warp[i ^ warp[i].parameter].data)->value;
}

template <auto emulation, bool flag, typename Data>
void emulate(Fiber* warp, int threads) {
  Data* lanes[kLanesOfWarp];
  for (int i = 0; i < threads; ++i) lanes[i] = static_cast<Data*>(warp[i].data);
  emulation(flag, lanes);
}

const Meeting
    kExchange = {"exchanges", false, exchange},
    kTeamSync = {"synchronises", false},
    kBlockSync = {"synchronises with all", true},
    kBf16 = {"multiplies bf16", false,
             emulate<multiplyFragments, true, ProductOfLane>},
    kF16 = {"multiplies f16", false,
            emulate<multiplyFragments, false, ProductOfLane>},
    kF32 = {"multiplies f32", false,
            emulate<multiplyFloatFragments, false, FloatProductOfLane>},
    kLoad = {"loads matrices", false, emulate<loadMatrices, false, LoadOfLane>},
    kTransposed = {"loads transposed matrices", false,
                   emulate<loadMatrices, true, LoadOfLane>};

using Words = int32_t __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));

Floats multiply(const Meeting& meeting, Words left, int32_t right,
                int32_t right_below, Floats sums) {
  ProductOfLane product;
  std::memcpy(product.left, &left, sizeof(left));
  product.right[0] = static_cast<uint32_t>(right);
  product.right[1] = static_cast<uint32_t>(right_below);
  std::memcpy(product.sums, &sums, sizeof(sums));
  wait(meeting, 0, &product);
  std::memcpy(&sums, product.sums, sizeof(sums));
  return sums;
}

Words load(const Meeting& meeting, const char* row) {
  LoadOfLane load = {row, {}};
  wait(meeting, 0, &load);
  Words words;
  std::memcpy(&words, load.words, sizeof(words));
  return words;
}

}  // namespace

std::string runTeam(int threads, const std::function<void()>& body) {
  Team all;
  all.body = &body;
  all.fibers.resize(threads);
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

// What generated code calls.
#define FOR_GENERATED_CODE __attribute__((visibility("default")))
extern "C" {
FOR_GENERATED_CODE int64_t partita_team_thread() {
  return team->current % kLanesOfWarp;
}
FOR_GENERATED_CODE int64_t partita_block_thread() { return team->current; }

FOR_GENERATED_CODE int32_t partita_team_exchange(int32_t value,
                                                 int32_t distance) {
  Exchange data = {value, 0};
  wait(kExchange, distance, &data);
  return data.received;
}

FOR_GENERATED_CODE void partita_team_sync() { wait(kTeamSync); }
FOR_GENERATED_CODE void partita_block_sync() { wait(kBlockSync); }

FOR_GENERATED_CODE Floats partita_multiply_bf16(Words left, int32_t right,
                                                int32_t below, Floats sums) {
  return multiply(kBf16, left, right, below, sums);
}
FOR_GENERATED_CODE Floats partita_multiply_f16(Words left, int32_t right,
                                               int32_t below, Floats sums) {
  return multiply(kF16, left, right, below, sums);
}

FOR_GENERATED_CODE Floats partita_multiply_f32(Floats left, float right,
                                               float below, Floats sums) {
  FloatProductOfLane product = {{}, {right, below}, {}};
  std::memcpy(product.left, &left, sizeof(left));
  std::memcpy(product.sums, &sums, sizeof(sums));
  wait(kF32, 0, &product);
  std::memcpy(&sums, product.sums, sizeof(sums));
  return sums;
}

FOR_GENERATED_CODE Words partita_load_matrices(const char* base,
                                               int64_t offset) {
  return load(kLoad, base + offset);
}
FOR_GENERATED_CODE Words partita_load_transposed(const char* base,
                                                 int64_t offset) {
  return load(kTransposed, base + offset);
}

FOR_GENERATED_CODE void partita_copy(char* base, int64_t offset,
                                     int64_t source) {
  here().copies.push_back(
      {base + offset, reinterpret_cast<const char*>(source)});
}
FOR_GENERATED_CODE void partita_wait_for_copies() {
  for (const Copy& copy : here().copies) std::memcpy(copy.to, copy.from, 16);
  here().copies.clear();
}

FOR_GENERATED_CODE float partita_exp2(float x) { return std::exp2(x); }
}

}  // namespace partita::kernels
