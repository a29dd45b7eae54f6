// Writes one checkpoint to disk.
#ifndef PARTITA_RUNTIME_CHECKPOINT_SAVE_JOB_H_
#define PARTITA_RUNTIME_CHECKPOINT_SAVE_JOB_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/checkpoint/entry.h"
#include "runtime/checkpoint/layout.h"
#include "runtime/checkpoint/manifest.h"

namespace partita::checkpoint {

struct SaveJob {
  std::string folder;
  std::string run;  // different for every attempt, the same on all ranks
  int keep = 1;
  int rank = 0, ranks = 1;
  double rank_timeout = 0;  // seconds
  State state;
  Layout layout;
  // This rank's part: bytes [source, source + size) of the snapshot become
  // bytes [target, target + size) of a file.
  struct Piece {
    size_t file = 0;
    int64_t target = 0;
    int64_t source = 0;
    int64_t size = 0;
  };
  std::vector<Piece> pieces;  // by file
  const char* snapshot = nullptr;
  // Called for each piece once it is written. Null: nothing to do.
  std::function<void(const Piece&)> written;
  // Names and contents of further files.
  std::vector<std::pair<std::string, std::string>> companions;
};

// Writes this rank's part. Rank 0 then completes the checkpoint from all parts
// and removes checkpoints beyond `keep`. After an error, nothing of it is left
// and other checkpoints are unchanged. Sets `bytes` to the size on disk.
absl::Status RunSaveJob(const SaveJob& job, int64_t* bytes);

// Tells rank 0 that this rank will not write its part.
void ReportFailure(const SaveJob& job, const absl::Status& status);

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_SAVE_JOB_H_
