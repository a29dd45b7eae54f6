// Counter-based random numbers.
#include "runtime/base/random_fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace partita::base {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
constexpr int64_t kBlock = 4096;
constexpr int64_t kElementsPerThread = 1 << 18;

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

double Unit(uint64_t word) { return static_cast<double>(word >> 11) * 0x1p-53; }

using Generator = std::function<double(int64_t)>;

void FillRange(const Generator& generator, DType dtype, int64_t first,
               int64_t count, char* target) {
  double block[kBlock];
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t size = std::min(kBlock, count - done);
    for (int64_t i = 0; i < size; ++i) block[i] = generator(first + done + i);
    Convert(DType::kF64, block, dtype, target + done * SizeOf(dtype), size);
  }
}

}  // namespace

uint64_t RandomWord(uint64_t seed, uint64_t i, int j) {
  return Mix(Mix(seed) + (2 * i + static_cast<uint64_t>(j) + 1) * kGolden);
}

double RandomUnit(uint64_t seed, uint64_t i) {
  return Unit(RandomWord(seed, i, 0));
}

double RandomNormal(uint64_t seed, uint64_t i) {
  // 1 - u is in (0, 1], where the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - RandomUnit(seed, i)));
  return radius * std::cos(2.0 * M_PI * Unit(RandomWord(seed, i, 1)));
}

absl::Status FillElements(const Fill& fill, DType dtype, int64_t first,
                          int64_t count, void* target) {
  if (count <= 0) return absl::OkStatus();
  char* bytes = static_cast<char*>(target);
  if (fill.kind == "zeros") {
    std::memset(bytes, 0, static_cast<size_t>(count * SizeOf(dtype)));
    return absl::OkStatus();
  }
  Generator generator;
  if (fill.kind == "ones") {
    generator = [](int64_t) { return 1.0; };
  } else if (fill.kind == "normal" && IsFloat(dtype)) {
    generator = [&fill](int64_t i) {
      return fill.scale * RandomNormal(fill.seed, static_cast<uint64_t>(i));
    };
  } else if (fill.kind == "uniform" && IsFloat(dtype)) {
    generator = [&fill](int64_t i) {
      return fill.scale *
             (2.0 * RandomUnit(fill.seed, static_cast<uint64_t>(i)) - 1.0);
    };
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("expected zeros, ones, or for floating-point types normal "
                     "or uniform; found '",
                     fill.kind, "' for ", NameOf(dtype)));
  }
  const int64_t wanted =
      std::min<int64_t>(count / kElementsPerThread + 1,
                        std::max(1u, std::thread::hardware_concurrency()));
  const int64_t share = (count + wanted - 1) / wanted;
  std::vector<std::thread> threads;
  for (int64_t begin = share; begin < count; begin += share) {
    threads.emplace_back(FillRange, std::cref(generator), dtype, first + begin,
                         std::min(share, count - begin),
                         bytes + begin * SizeOf(dtype));
  }
  FillRange(generator, dtype, first, std::min(share, count), bytes);
  for (std::thread& thread : threads) thread.join();
  return absl::OkStatus();
}

}  // namespace partita::base
