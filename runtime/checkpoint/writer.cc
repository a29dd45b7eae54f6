// Takes snapshots, and runs the thread that writes them.
#include "runtime/checkpoint/writer.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/files.h"
#include "runtime/checkpoint/folder.h"
#include "runtime/checkpoint/save_job.h"
#include "runtime/checkpoint/snapshot_memory.h"

namespace partita::checkpoint {
namespace {

constexpr int64_t kAlignment = 64;

absl::Status CheckRuns(const Entry& entry) {
  const int64_t size = base::SizeOf(entry.spec.dtype);
  const int64_t whole = base::ElementCount(entry.spec.shape).value_or(0);
  for (const Run& run : entry.runs)
    if (run.count < 0 || run.first < 0 || run.local < 0 ||
        run.first > whole - run.count ||
        run.local > entry.block_bytes / size - run.count)
      return absl::InternalError(absl::StrCat(
          "checkpoint: tensor '", entry.spec.name, "': elements [", run.first,
          ", ", run.first, " + ", run.count, ") lie outside the tensor"));
  return absl::OkStatus();
}

// Later checkpoints: renames damaged ones, refuses complete ones of another
// run.
absl::Status CheckLater(const WriterOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                           ListSteps(options.folder));
  for (int64_t step : steps) {
    if (step <= options.start_step) continue;
    const std::string path = StepPath(options.folder, step);
    if (Checkpoint::Open(path, Verify::kChecksums).ok())
      return absl::FailedPreconditionError(absl::StrCat(
          options.folder, ": expected no checkpoint beyond step ",
          options.start_step, ", where this run begins, found one of step ",
          step, "; resume from it, or give another folder"));
    std::string aside = path + ".damaged";
    for (int i = 2; std::filesystem::exists(aside); ++i)
      aside = absl::StrCat(path, ".damaged-", i);
    if (rename(path.c_str(), aside.c_str()) != 0)
      return base::FileError(
          absl::StrCat(path, ": cannot set the damaged checkpoint aside"),
          errno);
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const WriterOptions& options) {
  if (options.keep < 1)
    return absl::InvalidArgumentError(absl::StrCat(
        "expected to keep at least 1 checkpoint, found ", options.keep));
  if (options.ranks > 1 && options.run.empty())
    return absl::InternalError("several ranks need a common name of the run");
  return absl::OkStatus();
}

}  // namespace

class Writer::Impl {
 public:
  explicit Impl(WriterOptions options) : options_(std::move(options)) {}
  ~Impl() { Finish(); }

  absl::Status Prepare() {
    PARTITA_RETURN_IF_ERROR(CheckOptions(options_));
    if (options_.run.empty())
      options_.run = absl::StrCat(
          getpid(), "-",
          std::chrono::system_clock::now().time_since_epoch().count());
    std::error_code error;
    std::filesystem::create_directories(options_.folder, error);
    if (error)
      return base::FileError(
          absl::StrCat(options_.folder, ": cannot create the folder"),
          error.value());
    if (options_.rank != 0) return absl::OkStatus();
    PARTITA_ASSIGN_OR_RETURN(lock_, FolderLock::Take(options_.folder));
    // Other ranks of this run may have begun to write.
    PARTITA_RETURN_IF_ERROR(RemovePartial(
        options_.folder, std::numeric_limits<int64_t>::max(), options_.run));
    PARTITA_RETURN_IF_ERROR(CheckLater(options_));
    for (const std::string& path : options_.companions) {
      PARTITA_ASSIGN_OR_RETURN(std::string content, ReadSmallFile(path));
      companions_.emplace_back(std::filesystem::path(path).filename().string(),
                               std::move(content));
    }
    return absl::OkStatus();
  }

  absl::Status Save(const State& state, const std::vector<Entry>& entries) {
    Finish();
    SaveJob job;
    PARTITA_ASSIGN_OR_RETURN(job.layout,
                             MakeLayout(entries, options_.shard_bytes));
    job.folder = options_.folder;
    job.run = absl::StrCat(options_.run, "-", ++attempts_);
    confirmed_ = !options_.until_confirmed;
    job.keep = options_.keep + (confirmed_ ? 0 : 1);
    job.rank = options_.rank;
    job.ranks = options_.ranks;
    job.rank_timeout = options_.rank_timeout;
    job.state = state;
    job.companions = companions_;
    const absl::Status snapshot = TakeSnapshot(entries, job);
    if (!snapshot.ok()) {
      if (job.rank != 0) ReportFailure(job, snapshot);
      return snapshot;
    }
    try {
      writing_ = true;
      thread_ = std::thread([this, job = std::move(job)] { Write(job); });
    } catch (const std::system_error& error) {
      writing_ = false;
      return absl::ResourceExhaustedError(absl::StrCat(
          "checkpoint: cannot start the thread that writes: ", error.what(),
          "; nothing was written"));
    }
    return absl::OkStatus();
  }

  void Confirm() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (confirmed_) return;
    confirmed_ = true;
    if (!writing_) RemoveUnneeded();
  }

  void Finish() {
    if (thread_.joinable()) thread_.join();
  }

  std::vector<SaveResult> TakeResults() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(results_, {});
  }

 private:
  absl::Status TakeSnapshot(const std::vector<Entry>& entries, SaveJob& job) {
    int64_t total = 0;
    std::vector<int64_t> offsets;
    for (const Entry& entry : entries) {
      PARTITA_RETURN_IF_ERROR(CheckRuns(entry));
      offsets.push_back(total);
      if (!entry.runs.empty())
        total += (entry.block_bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    PARTITA_RETURN_IF_ERROR(memory_.Reserve(total, options_.snapshot_folder));
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      if (entry.runs.empty()) continue;
      PARTITA_RETURN_IF_ERROR(entry.read(memory_.data() + offsets[i]));
      memory_.Unload(offsets[i], entry.block_bytes);
      const int64_t size = base::SizeOf(entry.spec.dtype);
      for (const Run& run : entry.runs)
        job.pieces.push_back({job.layout.places[i].file,
                              job.layout.places[i].offset + run.first * size,
                              offsets[i] + run.local * size, run.count * size});
    }
    std::sort(job.pieces.begin(), job.pieces.end(),
              [](const SaveJob::Piece& a, const SaveJob::Piece& b) {
                return std::pair(a.file, a.target) <
                       std::pair(b.file, b.target);
              });
    job.snapshot = memory_.data();
    job.written = [this](const SaveJob::Piece& piece) {
      memory_.Unload(piece.source, piece.size);
    };
    return absl::OkStatus();
  }

  void Write(const SaveJob& job) {
    const auto start = std::chrono::steady_clock::now();
    SaveResult result;
    result.step = job.state.step;
    result.path = StepPath(job.folder, job.state.step);
    result.status = RunSaveJob(job, &result.bytes);
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    const std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    if (options_.until_confirmed && confirmed_ && result.status.ok())
      RemoveUnneeded();
    results_.push_back(std::move(result));
  }

  // If a removal fails, the next save tries again.
  void RemoveUnneeded() {
    if (options_.rank == 0)
      (void)KeepNewest(options_.folder, options_.keep, options_.run);
  }

  WriterOptions options_;
  int64_t attempts_ = 0;
  FolderLock lock_;
  std::vector<std::pair<std::string, std::string>> companions_;
  SnapshotMemory memory_;  // read by the thread while it runs
  std::thread thread_;
  std::mutex mutex_;
  bool confirmed_ = true;  // the newest save is confirmed
  bool writing_ = false;
  std::vector<SaveResult> results_;
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::~Writer() = default;

absl::StatusOr<std::unique_ptr<Writer>> Writer::Open(WriterOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  PARTITA_RETURN_IF_ERROR(impl->Prepare());
  return std::unique_ptr<Writer>(new Writer(std::move(impl)));
}

absl::Status Writer::Save(const State& state,
                          const std::vector<Entry>& entries) {
  return impl_->Save(state, entries);
}

void Writer::Confirm() { impl_->Confirm(); }

void Writer::Finish() { impl_->Finish(); }

std::vector<SaveResult> Writer::TakeResults() { return impl_->TakeResults(); }

}  // namespace partita::checkpoint
