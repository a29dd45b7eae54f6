// Fuzzes what finds the bytecode in a file of JAX. Any bytes are refused with a
// message, or a range inside them is found. MLIR reads the bytecode; the
// importer is under test in stablehlo_replay_test.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "frontends/stablehlo/artifact.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  partita::stablehlo::Artifact artifact;
  std::string error;
  const bool is_found = partita::stablehlo::findArtifact(file, artifact, error);
  if (is_found != error.empty()) abort();
  if (!is_found) return 0;
  if (artifact.bytecode.data() < file.data() ||
      artifact.bytecode.data() + artifact.bytecode.size() >
          file.data() + file.size())
    abort();
  return 0;
}
