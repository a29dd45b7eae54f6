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

// State, besides tensors, that a run needs to resume exactly.
struct State {
  int64_t step = 0;   // steps done
  uint64_t seed = 0;  // of the run, e.g. for dropout
  std::string data;   // BatchSource::State
  // Further trainer state: UTF-8 texts by name.
  std::map<std::string, std::string> extra;
};

struct FileRecord {
  int64_t bytes = 0;
  uint32_t crc32 = 0;
};

struct Manifest {
  State state;
  std::map<std::string, FileRecord> files;  // all but state.json itself
};

inline constexpr char kManifestName[] = "state.json";

std::string WriteManifest(const Manifest& manifest);

// `path` is for messages. InvalidArgument if the text is damaged or of an
// unsupported version.
absl::StatusOr<Manifest> ParseManifest(const std::string& text,
                                       const std::string& path);

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_MANIFEST_H_
