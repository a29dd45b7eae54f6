// Feeds a fuzz target from a test.
#ifndef PARTITA_TESTS_FUZZ_REPLAY_H_
#define PARTITA_TESTS_FUZZ_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace partita::fuzz {

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// Runs the target that is linked into the test.
inline void Replay(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                         bytes.size());
}

}  // namespace partita::fuzz

#endif  // PARTITA_TESTS_FUZZ_REPLAY_H_
