// Prints every case of divisions.h for tests that are not in C++: one per line,
// with model, name, mesh, shard and attention separated by tabs.
#include <cstdio>

#include "tests/e2e/divisions.h"

int main() {
  for (const auto& [model, division] : partita::e2e::DividedCases())
    std::printf("%s\t%s\t%s\t%s\t%s\n", model, division.name, division.mesh,
                division.shard, division.attention);
}
