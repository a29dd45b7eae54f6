// Philox 4x32-10, the counter-based generator of nn.random (Salmon et al.,
// 2011): a keyed bijection of 128-bit counters.
#ifndef PARTITA_DIALECTS_NN_PHILOX_H_
#define PARTITA_DIALECTS_NN_PHILOX_H_

#include <array>
#include <cstdint>

namespace partita::nn {

inline constexpr uint32_t kPhiloxMultiplier[2] = {0xD2511F53, 0xCD9E8D57};
inline constexpr uint32_t kPhiloxKeyStep[2] = {0x9E3779B9, 0xBB67AE85};
inline constexpr int kPhiloxRounds = 10;

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultiplier[0]} * counter[0];
    const uint64_t product1 = uint64_t{kPhiloxMultiplier[1]} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key = {key[0] + kPhiloxKeyStep[0], key[1] + kPhiloxKeyStep[1]};
  }
  return counter;
}

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_PHILOX_H_
