// Counter-based random numbers.
#include "runtime/base/random_fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/processors.h"

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

// The value that a normal variable stays below with probability u: Wichura's
// algorithm AS 241 (1988), a quotient of two polynomials in the middle, and
// another one in the tails. Accurate to 1e-15 for u from 2^-33 on.
double NormalQuantile(double u) {
  const double q = u - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    const double numerator =
        (((((((2509.0809287301226727 * r + 33430.575583588128105) * r +
              67265.770927008700853) *
                 r +
             45921.953931549871457) *
                r +
            13731.693765509461125) *
               r +
           1971.5909503065514427) *
              r +
          133.14166789178437745) *
             r +
         3.387132872796366608);
    const double denominator =
        (((((((5226.495278852854561 * r + 28729.085735721942674) * r +
              39307.89580009271061) *
                 r +
             21213.794301586595867) *
                r +
            5394.1960214247511077) *
               r +
           687.1870074920579083) *
              r +
          42.313330701600911252) *
             r +
         1.0);
    return q * numerator / denominator;
  }
  const double r = std::sqrt(-std::log(q < 0 ? u : 1.0 - u)) - 1.6;
  const double numerator =
      (((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r +
            0.24178072517745061177) *
               r +
           1.27045825245236838258) *
              r +
          3.64784832476320460504) *
             r +
         5.7694972214606914055) *
            r +
        4.6303378461565452959) *
           r +
       1.42343711074968357734);
  const double denominator =
      (((((((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r +
            0.0151986665636164571966) *
               r +
           0.14810397642748007459) *
              r +
          0.68976733498510000455) *
             r +
         1.6763848301838038494) *
            r +
        2.05319162663775882187) *
           r +
       1.0);
  return q < 0 ? -numerator / denominator : numerator / denominator;
}

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

uint64_t RandomWord(uint64_t seed, uint64_t i) {
  return Mix(Mix(seed) + (i + 1) * kGolden);
}

double RandomUnit(uint64_t seed, uint64_t i) {
  return static_cast<double>(RandomWord(seed, i) >> 11) * 0x1p-53;
}

double RandomNormal(uint64_t seed, uint64_t i) {
  return NormalQuantile((static_cast<double>(RandomWord(seed, i) >> 32) + 0.5) *
                        0x1p-32);
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
      std::min<int64_t>(count / kElementsPerThread + 1, AvailableProcessors());
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
