// Checkpoints written while training goes on.
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
  std::string folder;  // Made if it is not there.
  int keep = 3;        // Newest checkpoints that are kept, at least 1.
  // Whether one more is kept until Confirm: the newest may be worse than those
  // before.
  bool until_confirmed = false;
  // The step that the run begins with: 0, or that of the checkpoint it goes on
  // from.
  int64_t start_step = 0;
  // Small files that go into every checkpoint as they are: config.json and the
  // tokenizer, which Hugging Face's loader wants beside the weights.
  std::vector<std::string> companions;
  int64_t shard_bytes = 5'000'000'000;
  // Of several processes, each has a writer, for a folder that all see. `run`
  // is the same on all of them and another for every run; a single process may
  // leave it empty.
  int rank = 0;
  int ranks = 1;
  std::string run;
  double rank_timeout = 600;  // Seconds that rank 0 waits for the others.
};

// What became of a Save.
struct SaveResult {
  int64_t step = 0;
  // Not OK: nothing of this checkpoint is left and those before are intact.
  absl::Status status;
  std::string path;
  int64_t bytes = 0;   // On disk, of all ranks.
  double seconds = 0;  // In the background.
};

// How a checkpoint comes to be. Save copies this rank's blocks into memory; a
// thread writes them at their places in files of a folder that has another
// name, and syncs them. Rank 0 waits until all ranks have said there that they
// are done, computes checksums, writes state.json, and renames the folder. So
// what carries a checkpoint's name is whole, whatever was killed when. Other
// ranks' results say only that their part was written.
//
// All ranks save the same steps. Used by one thread at a time.
class Writer {
 public:
  // Rank 0 takes the folder's lock, removes what killed runs left half written,
  // and sets damaged checkpoints of later steps aside. FailedPrecondition if
  // the folder has whole ones of later steps: they are another run's.
  static absl::StatusOr<std::unique_ptr<Writer>> Open(WriterOptions options);

  // Waits for what is being written.
  ~Writer();

  // Takes a snapshot and returns; at most one is being written: waits for the
  // one before. Errors of the snapshot: memory, or what an entry's `read`
  // returned. What goes wrong in writing is in TakeResults.
  absl::Status Save(const State& state, const std::vector<Entry>& entries);

  // What was saved last is good: one more than `keep` is no longer needed, now
  // or when it is written.
  void Confirm();

  // Waits for what is being written.
  void Finish();

  // Of all that has ended since the last call, in order.
  std::vector<SaveResult> TakeResults();

 private:
  class Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_WRITER_H_
