// state.json: what makes a folder of files a checkpoint.
//
// {"format": "partita-checkpoint", "version": 1, "step", "seed", "data",
//  "extra": {name: text}, "files": {name: {"bytes", "crc32"}}, "crc32"}
// The last is the CRC-32 of the object without it, as this writer prints it.
#ifndef PARTITA_RUNTIME_CHECKPOINT_MANIFEST_H_
#define PARTITA_RUNTIME_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace partita::checkpoint {

// What a run needs besides tensors to go on as if it had not stopped.
struct State {
  int64_t step = 0;   // Steps done.
  uint64_t seed = 0;  // Of dropout and the like.
  std::string data;   // BatchSource::State
  // Whatever else the trainer keeps, UTF-8 texts by name.
  std::map<std::string, std::string> extra;
};

struct FileRecord {
  int64_t bytes = 0;
  uint32_t crc32 = 0;
};

struct Manifest {
  State state;
  std::map<std::string, FileRecord> files;  // All but state.json itself.
};

inline constexpr char kManifestName[] = "state.json";

std::string WriteManifest(const Manifest& manifest);

// `path` is for messages. InvalidArgument where the text is damaged or of a
// version that we do not read.
absl::StatusOr<Manifest> ParseManifest(const std::string& text,
                                       const std::string& path);

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_MANIFEST_H_
