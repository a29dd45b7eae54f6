// One process of an MPI test: runs every kind of collective against the
// reference, over real messages, and checks the timeout with a rank that works
// for long. Usage: mpi_check PLUGIN.
#include <chrono>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/launch.h"
#include "runtime/comm/mpi_world.h"
#include "runtime/comm/row_cases.h"
#include "runtime/comm/started_cases.h"
#include "runtime/comm/test_cases.h"

namespace partita::comm {
namespace {

constexpr std::chrono::milliseconds kTimeout(2000);

absl::Status CheckOne(Communicator& communicator, const Operation& op) {
  const int n = communicator.size();
  std::vector<int> ranks(static_cast<size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::string> inputs;
  for (int i = 0; i < n; ++i) inputs.push_back(TestInput(op, i));
  std::string output(static_cast<size_t>(op.OutputBytes()), '\xEE');
  auto collective = communicator.Prepare(op, ranks);
  if (!collective.ok()) return collective.status();
  const absl::Status status = communicator.Run(
      **collective, inputs[static_cast<size_t>(communicator.rank())].data(),
      output.data());
  if (!status.ok()) return status;
  return output == ExpectedOutput(op, n, communicator.rank(), inputs)
             ? absl::OkStatus()
             : absl::InternalError("wrong result of " + Describe(op));
}

absl::Status CheckSecondEnd(Communicator& communicator) {
  if (communicator.MakeBeside() == nullptr)
    return absl::InternalError("MPI serves one thread only");
  return StartedAmongOthers(communicator);
}

// The last rank works for twice the timeout of the others.
absl::Status CheckTimeout(Communicator& communicator) {
  constexpr std::chrono::milliseconds kStep(50);
  if (communicator.rank() == communicator.size() - 1) {
    for (auto left = 2 * kTimeout; left.count() > 0; left -= kStep) {
      std::this_thread::sleep_for(kStep);
      const absl::Status status = communicator.Progress();
      if (!status.ok()) return status;
    }
  }
  return communicator.Agree(absl::OkStatus(), 1);
}

int Check(const std::string& plugin) {
  const auto launch = DetectLaunch();
  if (!launch) return 2;
  const auto world = MpiWorld::Start(*launch, plugin);
  if (!world.ok()) {
    std::cerr << world.status() << std::endl;
    return 1;
  }
  const auto communicator =
      (*world)->MakeCommunicator({std::chrono::milliseconds(20000)});
  std::vector<Operation> operations = TestOperations(communicator->size());
  if (communicator->size() == 3) {
    for (Operation& op : TestReductions()) operations.push_back(std::move(op));
  }
  absl::Status status;
  for (const Operation& op : operations) {
    status = communicator->Agree(CheckOne(*communicator, op));
    if (!status.ok()) break;
  }
  if (status.ok()) status = TransferRing(*communicator);
  if (status.ok()) status = MoveRowsAround(*communicator);
  if (status.ok()) status = CheckSecondEnd(*communicator);
  if (status.ok())
    status = CheckTimeout(*(*world)->MakeCommunicator({kTimeout}));
  if (!status.ok()) {
    std::cerr << communicator->rank() << ": " << status << std::endl;
  } else if (communicator->rank() == 0) {
    std::cout << operations.size() << " operations on " << communicator->size()
              << " processes" << std::endl;
  }
  return (*world)->Finish(std::chrono::milliseconds(20000)).ok() && status.ok()
             ? 0
             : 1;
}

}  // namespace
}  // namespace partita::comm

int main(int argc, char** argv) {
  return argc == 2 ? partita::comm::Check(argv[1]) : 2;
}
