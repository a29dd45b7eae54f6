// Writes checkpoints while training continues.
#ifndef PARTITA_RUNTIME_CHECKPOINT_WRITER_H_
#define PARTITA_RUNTIME_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/entry.h"
#include "runtime/checkpoint/manifest.h"

namespace partita::checkpoint {

struct WriterOptions {
  std::string folder;  // created if it does not exist
  int keep = 3;        // number of newest checkpoints to keep, at least 1
  // Keep one more checkpoint until Confirm, since the newest may be worse than
  // the previous ones.
  bool until_confirmed = false;
  // First step of the run: 0, or the step of the checkpoint that it resumes.
  int64_t start_step = 0;
  // Small files copied into every checkpoint: config.json and the tokenizer,
  // which Hugging Face's loader expects beside the weights.
  std::vector<std::string> companions;
  int64_t shard_bytes = 5'000'000'000;
  // Folder for a nameless file that holds the snapshot while it is written;
  // empty: the snapshot is in memory.
  std::string snapshot_folder;
  // With several processes, each has a writer for the same folder. `run` is the
  // same on all of them and different for every run; a single process may leave
  // it empty.
  int rank = 0;
  int ranks = 1;
  std::string run;
  double rank_timeout = 600;  // seconds that rank 0 waits for the others
};

// Result of a Save.
struct SaveResult {
  int64_t step = 0;
  // On an error, nothing of this checkpoint is left, and earlier ones are
  // intact.
  absl::Status status;
  std::string path;
  int64_t bytes = 0;   // on disk, over all ranks
  double seconds = 0;  // in the background
};

// Saves in two phases. Save copies this rank's blocks into memory, or into a
// file of its own. Then a thread writes them to files in a folder with a
// temporary name, and syncs them. Rank 0 waits in that folder for the other
// ranks' markers, computes checksums, writes state.json and renames the folder.
// So a folder with a checkpoint's name is complete, whenever a process is
// killed. The results of other ranks only say that their part was written.
//
// All ranks save the same steps. Used by one thread at a time.
class Writer {
 public:
  // Rank 0 takes the folder's lock, removes partial checkpoints of killed runs,
  // and renames damaged checkpoints of later steps. FailedPrecondition if the
  // folder has complete checkpoints of later steps, since they belong to
  // another run.
  static absl::StatusOr<std::unique_ptr<Writer>> Open(WriterOptions options);

  // Waits for the save in flight.
  ~Writer();

  // Takes a snapshot and returns. First waits for the previous save, since at
  // most one is in flight. Returns errors of the snapshot: lack of memory, or
  // an error of an entry's `read`. TakeResults returns errors of writing.
  absl::Status Save(const State& state, const std::vector<Entry>& entries);

  // Confirms that the last save is good, so that the one more than `keep` can
  // be removed, now or once the last save is written.
  void Confirm();

  // Waits for the save in flight.
  void Finish();

  // Results of all saves that ended since the last call, in order.
  std::vector<SaveResult> TakeResults();

 private:
  class Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_WRITER_H_
