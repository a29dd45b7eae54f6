// Chooses the process that reports an error, and ends the processes.
#include "runtime/tools/run_ranks.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/launch.h"
#include "runtime/comm/world.h"

namespace partita::tools {
namespace {

using session::SessionOptions;

int CodeOf(const absl::Status& status) {
  if (status.ok()) return 0;
  return absl::IsInternal(status) ? 70 : 1;
}

using executor::RankGroup;

// Opens a model; with a group, uses its states.
using Open = std::function<absl::StatusOr<std::unique_ptr<RankGroup>>(
    const SessionOptions&, const RankGroup* states)>;

struct Models {
  const SessionOptions& options;
  const std::vector<std::string>& others;
};

// Warns before the work begins, which may take days.
absl::Status WarnAndWork(RankGroup& ranks,
                         const std::vector<RankGroup*>& others,
                         const RanksOfAll& work, std::ostream& error) {
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::string> warnings,
                           ranks.Warnings());
  if (ranks.IsMain())
    for (const std::string& warning : warnings)
      error << "partita-run: warning: " << warning << std::endl;
  return work(ranks, others);
}

absl::Status OpenAndWork(const Models& models, const Open& open,
                         const RanksOfAll& work, std::ostream& error) {
  PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<RankGroup> first,
                           open(models.options, nullptr));
  std::vector<std::unique_ptr<RankGroup>> opened;
  std::vector<RankGroup*> others;
  for (const std::string& model : models.others) {
    SessionOptions options = models.options;
    options.model = model;
    PARTITA_ASSIGN_OR_RETURN(opened.emplace_back(), open(options, first.get()));
    others.push_back(opened.back().get());
  }
  return WarnAndWork(*first, others, work, error);
}

// Runs this process as one rank. An error that all ranks know is printed once,
// and all end in order. Any other error ends all processes at once.
int RunAsProcess(const Models& models, const comm::Launch& launch,
                 const RanksOfAll& work, std::ostream& error) {
  const comm::CommOptions comm = session::CommOptionsOf(models.options);
  const auto world = comm::StartWorld(launch, comm);
  if (!world.ok()) {
    // At a rendezvous, a rank unknown to rank 0 reports its own
    // error.
    if (launch.rank == 0 || !launch.meet_at.empty())
      error << "partita-run: "
            << (launch.rank == 0 ? ""
                                 : absl::StrCat("rank ", launch.rank, ": "))
            << world.status().message() << std::endl;
    return 1;
  }
  std::unique_ptr<comm::Communicator> communicator =
      (*world)->MakeCommunicator(comm);
  const std::string who = communicator->Describe(communicator->rank());
  const absl::Status status = OpenAndWork(
      models,
      [&](const SessionOptions& options, const RankGroup* states) {
        return session::OpenOneRank(options, launch, *communicator, states);
      },
      work, error);
  const bool known = communicator->agreed();
  if (!status.ok() && (!known || communicator->rank() == 0)) {
    error << "partita-run: " << (known ? "" : who + ": ") << status.message()
          << std::endl;
  }
  if (!status.ok() && !known) (*world)->Abort(CodeOf(status));
  // The communicator's sends must end before MPI does.
  communicator.reset();
  // Waits as long as Agree does: one rank may have more to report.
  const absl::Status finished = (*world)->Finish(10 * comm.timeout);
  if (!finished.ok()) {
    error << "partita-run: " << who << ": " << finished.message() << std::endl;
    (*world)->Abort(CodeOf(finished));
  }
  return CodeOf(status.ok() ? finished : status);
}

// Checks one process of mpirun or srun; a model for one device runs as usual.
absl::Status CheckAlone(const SessionOptions& options,
                        const comm::Launch& launch) {
  if (options.devices > 0) return absl::OkStatus();
  PARTITA_ASSIGN_OR_RETURN(const program::Artifact artifact,
                           program::Artifact::Open(options.model));
  return session::CheckProcesses(artifact, options, launch);
}

}  // namespace

int64_t PeakProcessBytes() {
  // Not getrusage: its peak includes that of the process that started this one.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    int64_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %" SCNd64 " kB", &kilobytes) == 1)
      return kilobytes * 1024;
  }
  return 0;
}

absl::Status Flush(std::ostream& out) {
  return out.flush().good()
             ? absl::OkStatus()
             : absl::UnavailableError(
                   "cannot write the results to standard output");
}

int Tell(const absl::Status& status, std::ostream& error) {
  if (!status.ok()) error << "partita-run: " << status.message() << std::endl;
  return CodeOf(status);
}

bool Speaks() {
  const std::optional<comm::Launch> launch = comm::DetectLaunch();
  return !launch || launch->rank == 0;
}

int RunWithRanks(const SessionOptions& options, const RanksWork& work,
                 std::ostream& error) {
  return RunWithRanks(
      options, {},
      [&](RankGroup& ranks, const std::vector<RankGroup*>&) {
        return work(ranks);
      },
      error);
}

int RunWithRanks(const SessionOptions& options,
                 const std::vector<std::string>& others, const RanksOfAll& work,
                 std::ostream& error) {
  const Models models = {options, others};
  const std::optional<comm::Launch> launch = comm::DetectLaunch();
  if (launch && launch->size > 1)
    return RunAsProcess(models, *launch, work, error);
  absl::Status status;
  if (launch) status = CheckAlone(options, *launch);
  if (status.ok())
    status = OpenAndWork(models, session::OpenAllRanks, work, error);
  return Tell(status, error);
}

}  // namespace partita::tools
