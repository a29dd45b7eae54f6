// Writes parts, waits for other ranks' markers, computes checksums, renames.
#include "runtime/checkpoint/save_job.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/files.h"
#include "runtime/checkpoint/folder.h"

namespace partita::checkpoint {
namespace {

// Marker file that a rank writes when its part is done.
std::string DonePath(const std::string& folder, int rank) {
  return absl::StrCat(folder, "/rank-", rank, ".done");
}
std::string FailedPath(const std::string& folder, int rank) {
  return absl::StrCat(folder, "/rank-", rank, ".failed");
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

// Writes this rank's pieces of the tensors' files.
absl::Status WritePieces(const SaveJob& job, const std::string& folder) {
  size_t next = 0;
  for (size_t i = 0; i < job.layout.files.size(); ++i) {
    const bool is_mine = next < job.pieces.size() && job.pieces[next].file == i;
    if (!is_mine && job.rank != 0) continue;
    const Layout::File& description = job.layout.files[i];
    PARTITA_ASSIGN_OR_RETURN(
        PartFile file,
        PartFile::Open(absl::StrCat(folder, "/", description.name),
                       description.bytes));
    if (job.rank == 0)
      PARTITA_RETURN_IF_ERROR(file.Write(0, description.header));
    for (; next < job.pieces.size() && job.pieces[next].file == i; ++next) {
      const SaveJob::Piece& piece = job.pieces[next];
      PARTITA_RETURN_IF_ERROR(file.Write(
          piece.target, std::string_view(job.snapshot + piece.source,
                                         static_cast<size_t>(piece.size))));
      if (job.written) job.written(piece);
    }
    PARTITA_RETURN_IF_ERROR(file.Sync());
  }
  return absl::OkStatus();
}

absl::Status WritePart(const SaveJob& job, const std::string& folder) {
  // The first rank to arrive creates the folder.
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return base::FileError(absl::StrCat(folder, ": cannot create the folder"),
                           errno);
  PARTITA_RETURN_IF_ERROR(WritePieces(job, folder));
  if (job.rank != 0) return WriteSmallFile(DonePath(folder, job.rank), "");
  for (const Layout::Index& index : job.layout.indexes)
    PARTITA_RETURN_IF_ERROR(
        WriteSmallFile(absl::StrCat(folder, "/", index.name), index.content));
  for (const auto& [name, content] : job.companions)
    PARTITA_RETURN_IF_ERROR(
        WriteSmallFile(absl::StrCat(folder, "/", name), content));
  return absl::OkStatus();
}

// Waits for the other ranks' markers and removes them.
absl::Status AwaitRanks(const SaveJob& job, const std::string& folder) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  for (int rank = 1; rank < job.ranks; ++rank) {
    while (!Exists(DonePath(folder, rank))) {
      if (Exists(FailedPath(folder, rank)))
        return absl::UnavailableError(
            absl::StrCat("rank ", rank, " could not write its part: ",
                         ReadSmallFile(FailedPath(folder, rank)).value_or("")));
      const std::chrono::duration<double> waited = Clock::now() - start;
      if (waited.count() > job.rank_timeout)
        return absl::DeadlineExceededError(absl::StrCat(
            folder, ": expected rank ", rank, " to write its part within ",
            job.rank_timeout, " seconds, found nothing; do all ranks see this ",
            "folder, and do they run?"));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    unlink(DonePath(folder, rank).c_str());
  }
  return absl::OkStatus();
}

absl::Status WriteState(const SaveJob& job, const std::string& folder,
                        int64_t* bytes) {
  Manifest manifest;
  manifest.state = job.state;
  std::vector<std::string> names;
  for (const Layout::File& file : job.layout.files) names.push_back(file.name);
  for (const Layout::Index& index : job.layout.indexes)
    names.push_back(index.name);
  for (const auto& companion : job.companions) names.push_back(companion.first);
  for (const std::string& name : names) {
    PARTITA_ASSIGN_OR_RETURN(manifest.files[name],
                             ChecksumFile(absl::StrCat(folder, "/", name)));
    *bytes += manifest.files[name].bytes;
  }
  const std::string text = WriteManifest(manifest);
  *bytes += static_cast<int64_t>(text.size());
  PARTITA_RETURN_IF_ERROR(
      WriteSmallFile(absl::StrCat(folder, "/", kManifestName), text));
  return SyncFolder(folder);
}

void RemoveQuietly(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace

void ReportFailure(const SaveJob& job, const absl::Status& status) {
  const std::string partial = PartialPath(job.folder, job.state.step, job.run);
  (void)mkdir(partial.c_str(), 0777);
  (void)WriteSmallFile(FailedPath(partial, job.rank),
                       std::string(status.message()));
}

absl::Status RunSaveJob(const SaveJob& job, int64_t* bytes) {
  *bytes = 0;
  const int64_t step = job.state.step;
  const std::string partial = PartialPath(job.folder, step, job.run);
  absl::Status status = WritePart(job, partial);
  if (job.rank != 0) {
    if (!status.ok()) ReportFailure(job, status);
    return status;
  }
  if (status.ok()) status = AwaitRanks(job, partial);
  if (status.ok()) status = WriteState(job, partial, bytes);
  if (status.ok()) status = MoveIntoPlace(partial, StepPath(job.folder, step));
  if (!status.ok()) {
    RemoveQuietly(partial);
    return status;
  }
  PARTITA_RETURN_IF_ERROR(SyncFolder(job.folder));
  // The checkpoint is complete. If an old one cannot be removed, the next save
  // tries again.
  (void)RemovePartial(job.folder, step, "");
  (void)KeepNewest(job.folder, job.keep, job.run);
  return absl::OkStatus();
}

}  // namespace partita::checkpoint
