// Converts descriptors and fragments to matrices, and back.
#include "compiler/kernels/warpgroup_emulation.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "compiler/kernels/warp_emulation.h"

namespace partita::kernels {
namespace {

constexpr int kRows = 64, kDepth = 16;
int64_t multiplied = 0;
// A signalling NaN, which arithmetic does not make, with a number.
constexpr uint32_t kName = 0x7fa00000, kNumber = 0x000fffff;

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// The number of the sums that a NaN identifies; 0 for an ordinary float.
uint32_t nameIn(float value) {
  const uint32_t bits = bitsOf(value);
  return (bits & ~kNumber) == kName ? bits & kNumber : 0;
}

// Row and column of the i-th sum of a thread.
int rowOf(int thread, int i) {
  return 16 * (thread / 32) + thread % 32 / 4 + 8 * (i / 2 % 2);
}
int columnOf(int thread, int i) {
  return 8 * (i / 4) + 2 * (thread % 4) + i % 2;
}

std::string inHex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%#llx",
                static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

int64_t multipliedGroups() { return multiplied; }

std::string WarpgroupEmulation::read(uint64_t descriptor, bool rows_together,
                                     int count, bool bf16, Matrix& matrix,
                                     SharedRange* range) const {
  const auto bytes = [&](int bit) {
    return static_cast<int64_t>(descriptor >> bit & 0x3fff) * 16;
  };
  const int64_t start = bytes(0), leading = bytes(16), stride = bytes(32);
  // All bits that are neither address nor offset.
  if ((descriptor & 0xffffc000c000c000) != uint64_t{1} << 62)
    return "expected a descriptor of a 128-byte swizzle without base offset, "
           "found " +
           inHex(descriptor);
  matrix.resize(static_cast<size_t>(count) * kDepth);
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < kDepth; ++k) {
      int64_t at = rows_together ? start + i / 64 * leading + k / 8 * stride +
                                       k % 8 * 128 + i % 64 * 2
                                 : start + i / 8 * stride + i % 8 * 128 + k * 2;
      at ^= (at >> 7 & 7) << 4;
      if (at < kSharedBegin)
        return "a descriptor reads in front of shared memory: " +
               inHex(descriptor);
      uint16_t bits;
      const char* const from = shared_ + (at - kSharedBegin);
      std::memcpy(&bits, from, sizeof(bits));
      if (range) {
        if (!range->begin || from < range->begin) range->begin = from;
        range->end = std::max(range->end, from + sizeof(bits));
      }
      matrix[static_cast<size_t>(i * kDepth + k)] = elementOf(bits, 0, bf16);
    }
  return "";
}

std::string WarpgroupEmulation::readMatrices(
    GroupProduct* const threads[kThreadsOfGroup], Pending& pending) {
  const GroupProduct& product = pending.product;
  for (size_t step = 0; step < 4; ++step) {
    std::string wrong =
        read(product.right[step], product.in_registers || product.right_down,
             product.columns, product.bf16, pending.right[step],
             &begun_.emplace_back());
    Matrix& left = pending.left[step];
    if (wrong.empty() && !product.in_registers)
      wrong = read(product.left[step], product.left_down, kRows, product.bf16,
                   left, &begun_.emplace_back());
    if (!wrong.empty()) return wrong;
    if (!product.in_registers) continue;
    left.resize(kRows * kDepth);
    for (int thread = 0; thread < kThreadsOfGroup; ++thread)
      for (int i = 0; i < 8; ++i) {
        const int row = rowOf(thread, 2 * (i / 2 % 2)),
                  column = columnOf(thread, 4 * (i / 4) + i % 2);
        left[static_cast<size_t>(row * kDepth + column)] =
            elementOf(threads[thread]->words[step][i / 2], i % 2, product.bf16);
      }
  }
  return "";
}

std::string WarpgroupEmulation::begin(
    GroupProduct* const threads[kThreadsOfGroup]) {
  if (shared_ == nullptr)
    return "expected an address in shared memory before the first product";
  Pending pending;
  pending.product = *threads[0];
  pending.group = group_;
  const GroupProduct& first = pending.product;
  for (int i = 1; i < kThreadsOfGroup; ++i)
    if (std::memcmp(threads[i]->left, first.left, sizeof(first.left)) != 0 ||
        std::memcmp(threads[i]->right, first.right, sizeof(first.right)) != 0)
      return "thread " + std::to_string(i) +
             " multiplies other matrices than thread 0";
  std::string wrong = readMatrices(threads, pending);
  if (!wrong.empty()) return wrong;
  const int count = first.columns / 2;
  uint32_t name = first.starts ? 0 : nameIn(threads[0]->sums[0]);
  const auto known = sums_.find(name);
  if (name != 0 && known == sums_.end())
    return "expected the sums that a wait returned, found them from before the "
           "wait";
  if (name == 0 && !first.fenced)
    return "expected sums in flight, found others, which need a fence";
  if (name == 0) {
    name = ++last_;
    Sums& sums = sums_[name];
    sums.values.resize(static_cast<size_t>(kRows * first.columns));
    for (int thread = 0; !first.starts && thread < kThreadsOfGroup; ++thread)
      for (int i = 0; i < count; ++i)
        sums.values[static_cast<size_t>(rowOf(thread, i) * first.columns +
                                        columnOf(thread, i))] =
            threads[thread]->sums[i];
  }
  const uint32_t named = kName | name;
  for (int thread = 0; thread < kThreadsOfGroup; ++thread)
    for (int i = 0; i < count; ++i)
      std::memcpy(&threads[thread]->sums[i], &named, sizeof(named));
  ++sums_[name].in_flight;
  pending.sums = name;
  multiplied += first.columns / 64;
  pending_.push_back(std::move(pending));
  return "";
}

std::string WarpgroupEmulation::finish(const Pending& pending) {
  const GroupProduct& product = pending.product;
  Sums& sums = sums_[pending.sums];
  for (size_t step = 0; step < 4; ++step) {
    Matrix now;
    for (const bool right : {true, false}) {
      if (!right && product.in_registers) continue;
      read(right ? product.right[step] : product.left[step],
           right ? product.in_registers || product.right_down
                 : product.left_down,
           right ? product.columns : kRows, product.bf16, now,
           &read_.emplace_back());
      const Matrix& before = right ? pending.right[step] : pending.left[step];
      if (std::memcmp(now.data(), before.data(), 4 * now.size()) != 0)
        return "shared memory has changed while a product was in flight";
    }
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < product.columns; ++column) {
        float& sum =
            sums.values[static_cast<size_t>(row * product.columns + column)];
        double exact = sum;
        for (int k = 0; k < kDepth; ++k)
          exact +=
              static_cast<double>(
                  pending.left[step][static_cast<size_t>(row * kDepth + k)]) *
              pending.right[step][static_cast<size_t>(column * kDepth + k)];
        sum = static_cast<float>(exact);
      }
  }
  --sums.in_flight;
  return "";
}

std::string WarpgroupEmulation::wait(
    GroupWait* const threads[kThreadsOfGroup]) {
  const int before = group_ - threads[0]->pending;
  size_t done = 0;
  for (; done < pending_.size() && pending_[done].group < before; ++done) {
    std::string wrong = finish(pending_[done]);
    if (!wrong.empty()) return wrong;
  }
  pending_.erase(pending_.begin(),
                 pending_.begin() + static_cast<std::ptrdiff_t>(done));
  const auto found = sums_.find(nameIn(threads[0]->sums[0]));
  if (found == sums_.end() || found->second.in_flight > 0) return "";
  const int columns = threads[0]->columns;
  for (int thread = 0; thread < kThreadsOfGroup; ++thread)
    for (int i = 0; i < columns / 2; ++i)
      threads[thread]->sums[i] = found->second.values[static_cast<size_t>(
          rowOf(thread, i) * columns + columnOf(thread, i))];
  sums_.erase(found);
  return "";
}

}  // namespace partita::kernels
