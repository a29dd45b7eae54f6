// Lists, names and removes checkpoints.
#include "runtime/checkpoint/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_error.h"
#include "runtime/base/status_macros.h"

namespace partita::checkpoint {
namespace {

constexpr char kStem[] = "step-";
constexpr char kPartial[] = ".partial-";
constexpr size_t kMaxDigits = 18;

struct Name {
  int64_t step = 0;
  bool is_partial = false;
};

// Empty if Partita did not make the name.
std::optional<Name> ParseName(const std::string& text) {
  const size_t stem = sizeof(kStem) - 1;
  if (text.compare(0, stem, kStem) != 0) return std::nullopt;
  Name name;
  size_t end = stem;
  for (; end < text.size() && text[end] >= '0' && text[end] <= '9'; ++end) {
    if (end - stem == kMaxDigits) return std::nullopt;
    name.step = name.step * 10 + (text[end] - '0');
  }
  if (end == stem) return std::nullopt;
  name.is_partial = text.compare(end, sizeof(kPartial) - 1, kPartial) == 0;
  if (!name.is_partial && end != text.size()) return std::nullopt;
  return name;
}

absl::StatusOr<std::vector<std::string>> ListNames(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator place(folder, error), end;
  while (!error && place != end) {
    names.push_back(place->path().filename().string());
    place.increment(error);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return base::FileError(
        absl::StrCat(folder, ": cannot list the checkpoints"), error.value());
  return names;
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return absl::OkStatus();
  return base::FileError(absl::StrCat(path, ": cannot remove the folder"),
                         error.value());
}

}  // namespace

std::string StepPath(const std::string& folder, int64_t step) {
  char name[64];
  std::snprintf(name, sizeof(name), "/%s%08lld", kStem,
                static_cast<long long>(step));
  return folder + name;
}

std::string PartialPath(const std::string& folder, int64_t step,
                        const std::string& run) {
  return absl::StrCat(StepPath(folder, step), kPartial, run);
}

absl::StatusOr<std::vector<int64_t>> ListSteps(const std::string& folder) {
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListNames(folder));
  std::vector<int64_t> steps;
  for (const std::string& text : names) {
    const std::optional<Name> name = ParseName(text);
    // Partita does not make names with other leading zeros.
    if (name && !name->is_partial &&
        StepPath(folder, name->step) == absl::StrCat(folder, "/", text))
      steps.push_back(name->step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

absl::Status RemovePartial(const std::string& folder, int64_t last_step,
                           const std::string& except) {
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListNames(folder));
  for (const std::string& text : names) {
    const std::optional<Name> name = ParseName(text);
    if (!name || !name->is_partial || name->step > last_step) continue;
    const std::string own = PartialPath(folder, name->step, except);
    const std::string path = absl::StrCat(folder, "/", text);
    if (!except.empty() && path.compare(0, own.size(), own) == 0) continue;
    PARTITA_RETURN_IF_ERROR(RemoveAll(path));
  }
  return absl::OkStatus();
}

absl::Status KeepNewest(const std::string& folder, int keep,
                        const std::string& run) {
  PARTITA_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListSteps(folder));
  for (size_t i = 0; i + static_cast<size_t>(keep) < steps.size(); ++i) {
    const std::string path = StepPath(folder, steps[i]);
    const std::string partial =
        PartialPath(folder, steps[i], absl::StrCat(run, "-old"));
    if (rename(path.c_str(), partial.c_str()) != 0)
      return base::FileError(
          absl::StrCat(path, ": cannot remove the old checkpoint"), errno);
    PARTITA_RETURN_IF_ERROR(RemoveAll(partial));
  }
  return absl::OkStatus();
}

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  const std::string path = folder + "/.lock";
  FolderLock lock;
  lock.descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock.descriptor_ < 0)
    return base::FileError(
        absl::StrCat(folder, ": cannot write checkpoints here"), errno);
  if (flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return absl::FailedPreconditionError(absl::StrCat(
        folder, ": expected a folder for this run alone, found that another ",
        "process writes checkpoints here; stop it or give another folder"));
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace partita::checkpoint
