// Finds a StableHLO program in a file: a portable artifact (MLIR bytecode), or
// the file that jax.export serializes, which holds one. Plain bytes, no MLIR.
#ifndef PARTITA_FRONTENDS_STABLEHLO_ARTIFACT_H_
#define PARTITA_FRONTENDS_STABLEHLO_ARTIFACT_H_

#include <string>
#include <string_view>

namespace partita::stablehlo {

struct Artifact {
  std::string_view bytecode;  // within the file
  std::string producer;       // "StableHLO_v1.15.0"
};

// True if the file begins as MLIR bytecode, or holds bytecode as jax.export
// writes it.
bool looksLikeArtifact(std::string_view file);

// False with an error if there is no bytecode of StableHLO.
bool findArtifact(std::string_view file, Artifact& artifact,
                  std::string& error);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_ARTIFACT_H_
