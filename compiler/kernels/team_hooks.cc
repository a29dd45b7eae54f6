// Functions that generated code calls to act on its team: exchanges, products
// of tensor cores, copies and barriers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "compiler/kernels/barrier_emulation.h"
#include "compiler/kernels/fiber_team.h"
#include "compiler/kernels/warp_emulation.h"
#include "compiler/kernels/warpgroup_emulation.h"

namespace partita::kernels {
namespace {

constexpr int64_t kCopyBytes = 16;

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

void meetAll(Fiber*, int) {
  team->barriers.meet();
  team->written.meet();
}

// For a warpgroup, which is the whole block.
template <typename Data, auto emulation>
void emulateGroup(Fiber* all, int threads) {
  if (threads != kThreadsOfGroup) {
    team->wrong = "expected a block of " + std::to_string(kThreadsOfGroup) +
                  " threads, found " + std::to_string(threads);
    return;
  }
  Data* data[kThreadsOfGroup];
  for (int i = 0; i < threads; ++i) data[i] = static_cast<Data*>(all[i].data);
  team->wrong = (team->warpgroup.*emulation)(data);
  for (const SharedRange& range : team->warpgroup.takeBegun())
    if (team->wrong.empty())
      team->wrong = team->written.access("a product", range);
  for (const SharedRange& range : team->warpgroup.takeRead())
    team->barriers.read(range);
}

void commitGroup(Fiber*, int) { team->warpgroup.commit(); }

const Meeting
    kExchange = {"exchanges", false, exchange},
    kTeamSync = {"synchronises", false},
    kBlockSync = {"synchronises with all", true, meetAll},
    kGroupProduct = {"multiplies with all", true,
                     emulateGroup<GroupProduct, &WarpgroupEmulation::begin>},
    kGroupWait = {"waits for products with all", true,
                  emulateGroup<GroupWait, &WarpgroupEmulation::wait>},
    kGroupCommit = {"commits products with all", true, commitGroup},
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

// --- Products of warpgroups ---

template <size_t n>
struct Sums {
  Floats eights[n];
};
template struct Sums<8>;
template struct Sums<16>;
using Descriptors = std::array<int64_t, 4>;

template <size_t n>
Sums<n> multiplyGroup(GroupProduct product, const Descriptors& right,
                      Sums<n> sums) {
  std::copy(right.begin(), right.end(), product.right);
  product.columns = 8 * n;
  float floats[4 * n];
  std::memcpy(floats, &sums, sizeof(floats));
  product.sums = floats;
  // All threads must agree on the kind of product.
  wait(kGroupProduct,
       static_cast<int>(4 * n) * 32 + product.left_down * 16 +
           product.right_down * 8 + product.bf16 * 4 + product.starts * 2 +
           product.in_registers,
       &product);
  std::memcpy(&sums, floats, sizeof(floats));
  return sums;
}

GroupProduct ofDescriptors(bool bf16, bool starts, bool fenced,
                           const Descriptors& left, int32_t left_down = 0,
                           int32_t right_down = 0) {
  GroupProduct product;
  product.bf16 = bf16;
  product.starts = starts;
  product.fenced = fenced;
  product.left_down = left_down != 0;
  product.right_down = right_down != 0;
  std::copy(left.begin(), left.end(), product.left);
  return product;
}

GroupProduct ofFragments(bool bf16, const std::array<Words, 4>& left) {
  GroupProduct product;
  product.bf16 = bf16;
  product.in_registers = true;
  std::memcpy(product.words, left.data(), sizeof(product.words));
  return product;
}

template <size_t n>
Sums<n> waitForGroups(int32_t pending, Sums<n> sums) {
  float floats[4 * n];
  std::memcpy(floats, &sums, sizeof(floats));
  GroupWait data = {pending, 8 * n, floats};
  wait(kGroupWait, pending, &data);
  std::memcpy(&sums, floats, sizeof(floats));
  return sums;
}

}  // namespace

// The functions that generated code calls.
#define EXPORTED __attribute__((visibility("default")))
extern "C" {
EXPORTED int64_t partita_team_thread() { return team->current % kLanesOfWarp; }
EXPORTED int64_t partita_block_thread() { return team->current; }

EXPORTED int32_t partita_team_exchange(int32_t value, int32_t distance) {
  Exchange data = {value, 0};
  wait(kExchange, distance, &data);
  return data.received;
}

EXPORTED void partita_team_sync() { wait(kTeamSync); }
EXPORTED void partita_block_sync() { wait(kBlockSync); }

EXPORTED Floats partita_multiply_bf16(Words left, int32_t right, int32_t below,
                                      Floats sums) {
  return multiply(kBf16, left, right, below, sums);
}
EXPORTED Floats partita_multiply_f16(Words left, int32_t right, int32_t below,
                                     Floats sums) {
  return multiply(kF16, left, right, below, sums);
}

EXPORTED Floats partita_multiply_f32(Floats left, float right, float below,
                                     Floats sums) {
  FloatProductOfLane product = {{}, {right, below}, {}};
  std::memcpy(product.left, &left, sizeof(left));
  std::memcpy(product.sums, &sums, sizeof(sums));
  wait(kF32, 0, &product);
  std::memcpy(&sums, product.sums, sizeof(sums));
  return sums;
}

EXPORTED Words partita_load_matrices(const char* base, int64_t offset) {
  return load(kLoad, base + offset);
}
EXPORTED Words partita_load_transposed(const char* base, int64_t offset) {
  return load(kTransposed, base + offset);
}

EXPORTED void partita_copy(char* base, int64_t offset, int64_t source) {
  here().copies.push_back(
      {base + offset, reinterpret_cast<const char*>(source)});
}
EXPORTED void partita_wait_for_copies() {
  for (const Copy& copy : here().copies) {
    std::memcpy(copy.to, copy.from, kCopyBytes);
    team->written.writeShared(team->current, {copy.to, copy.to + kCopyBytes});
  }
  here().copies.clear();
}

// Called after each store that generated code makes (report_writes.h).
EXPORTED void partita_wrote(int64_t address, int32_t bytes, int32_t shared) {
  const char* const at = reinterpret_cast<const char*>(address);
  if (shared != 0)
    team->written.writeShared(team->current, {at, at + bytes});
  else
    perform(team->written.writeDevice(team->current));
}

EXPORTED int32_t partita_take_ticket(int64_t address) {
  return (*reinterpret_cast<int32_t*>(address))++;
}
// Blocks run one after the other, so a turn that has not come never will.
EXPORTED void partita_await_turn(int64_t address, int32_t turn) {
  perform(team->written.awaitTurn(team->current, address, turn));
  const int32_t now = *reinterpret_cast<const int32_t*>(address);
  if (now == turn) return;
  perform("a block waits forever for turn " + std::to_string(turn) +
          ", where it is the turn of " + std::to_string(now));
}
EXPORTED void partita_pass_turn(int64_t address, int32_t turn) {
  perform(team->written.passTurn(team->current, address, turn));
  *reinterpret_cast<int32_t*>(address) = turn;
}

EXPORTED float partita_exp2(float x) { return std::exp2(x); }

// Shared memory begins at the multiple of 1024 bytes before `memory`.
EXPORTED int64_t partita_shared_address(const char* memory) {
  const auto past = reinterpret_cast<uintptr_t>(memory) % kSharedBegin;
  team->warpgroup.setShared(memory - past);
  return kSharedBegin + static_cast<int64_t>(past);
}

EXPORTED void partita_fence_tiles() {
  team->written.fence(team->current);
  team->barriers.fence(team->current);
}

EXPORTED void partita_barrier_make(char* base, int64_t offset,
                                   int32_t arrivals) {
  perform(team->barriers.make(base + offset, team->current, arrivals));
}
EXPORTED void partita_barrier_end(char* base, int64_t offset) {
  perform(team->barriers.end(base + offset, team->current));
}
EXPORTED void partita_barrier_arrive(char* base, int64_t offset) {
  perform(team->barriers.arrive(base + offset, team->current, 0));
}
EXPORTED void partita_barrier_expect(char* base, int64_t offset, int32_t bytes,
                                     int32_t does) {
  if (does == 0) return;
  perform(team->barriers.arrive(base + offset, team->current, bytes));
}
EXPORTED void partita_barrier_wait(char* base, int64_t offset, int32_t parity) {
  waitAtBarrier(base + offset, parity);
}
EXPORTED void partita_copy_box(char* base, int64_t offset, int64_t barrier,
                               const void* map, int32_t i0, int32_t i1,
                               int32_t i2, int32_t i3, int32_t does) {
  if (does == 0) return;
  const EmulatedMap& from = *static_cast<const EmulatedMap*>(map);
  char* const to = base + offset;
  perform(team->barriers.copy(to, base + barrier, team->current, from,
                              {i0, i1, i2, i3}));
  perform(team->written.access("a box", {to, to + from.bytes()}));
}
EXPORTED void partita_group_commit() { wait(kGroupCommit); }

#define FOUR(type, x) type x##0, type x##1, type x##2, type x##3
#define EIGHT_SUMS FOUR(Floats, s), Floats s4, Floats s5, Floats s6, Floats s7
#define SIXTEEN_SUMS                                                    \
  EIGHT_SUMS, Floats s8, Floats s9, Floats s10, Floats s11, Floats s12, \
      Floats s13, Floats s14, Floats s15
#define LIST_EIGHT s0, s1, s2, s3, s4, s5, s6, s7
#define LIST_SIXTEEN LIST_EIGHT, s8, s9, s10, s11, s12, s13, s14, s15

#define FLAGS int32_t left_down, int32_t right_down
#define TILE_SUMS_64 FLAGS, EIGHT_SUMS
#define TILE_SUMS_128 FLAGS, SIXTEEN_SUMS
#define LIST_LEFT {l0, l1, l2, l3}
#define ADD_PRODUCT(name, left, product, n, sums, list)                      \
  EXPORTED Sums<n> partita_group_add_##name(FOUR(left, l), FOUR(int64_t, r), \
                                            sums) {                          \
    return multiplyGroup<n>(product, {r0, r1, r2, r3}, {{list}});            \
  }
#define GROUP_PRODUCTS(type, bf16)                                            \
  EXPORTED Sums<8> partita_group_start_##type(FOUR(int64_t, l),               \
                                              FOUR(int64_t, r)) {             \
    return multiplyGroup<8>(ofDescriptors(bf16, true, true, LIST_LEFT),       \
                            {r0, r1, r2, r3}, {});                            \
  }                                                                           \
  ADD_PRODUCT(type, int64_t, ofDescriptors(bf16, false, false, LIST_LEFT), 8, \
              EIGHT_SUMS, LIST_EIGHT)                                         \
  ADD_PRODUCT(times_##type##_64, Words, ofFragments(bf16, LIST_LEFT), 8,      \
              EIGHT_SUMS, LIST_EIGHT)                                         \
  ADD_PRODUCT(times_##type##_128, Words, ofFragments(bf16, LIST_LEFT), 16,    \
              SIXTEEN_SUMS, LIST_SIXTEEN)                                     \
  ADD_PRODUCT(                                                                \
      tiles_##type##_64, int64_t,                                             \
      ofDescriptors(bf16, false, true, LIST_LEFT, left_down, right_down), 8,  \
      TILE_SUMS_64, LIST_EIGHT)                                               \
  ADD_PRODUCT(                                                                \
      tiles_##type##_128, int64_t,                                            \
      ofDescriptors(bf16, false, true, LIST_LEFT, left_down, right_down), 16, \
      TILE_SUMS_128, LIST_SIXTEEN)
GROUP_PRODUCTS(bf16, true)
GROUP_PRODUCTS(f16, false)

EXPORTED Sums<8> partita_group_wait_64(int32_t pending, EIGHT_SUMS) {
  return waitForGroups<8>(pending, {{LIST_EIGHT}});
}
EXPORTED Sums<16> partita_group_wait_128(int32_t pending, SIXTEEN_SUMS) {
  return waitForGroups<16>(pending, {{LIST_SIXTEEN}});
}
}

}  // namespace partita::kernels
