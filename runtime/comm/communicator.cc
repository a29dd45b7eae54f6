// Code shared by all communicators.
#include "runtime/comm/communicator.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::comm {

CommOptions OptionsFromEnvironment() {
  CommOptions options;
  const char* text = std::getenv("PARTITA_COMM_TIMEOUT");
  double seconds;
  if (text != nullptr && absl::SimpleAtod(text, &seconds) && seconds > 0 &&
      seconds < 1e6)
    options.timeout =
        std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000) + 1);
  return options;
}

Collective::Collective(Operation operation, std::vector<int> ranks, int index)
    : operation_(std::move(operation)),
      ranks_(std::move(ranks)),
      index_(index),
      fingerprint_(Fingerprint(operation_)) {}

absl::Status WrongTransfer(const Collective& transfer,
                           const std::string& found) {
  return absl::InternalError(
      absl::StrCat("rank ", transfer.ranks()[1], " expected ",
                   Describe(transfer.operation()), " of rank ",
                   transfer.ranks()[0], ", found ", found));
}

absl::Status DidNotArrive(const std::string& who, const Collective& collective,
                          std::chrono::milliseconds timeout,
                          const std::string& more) {
  return absl::DeadlineExceededError(
      absl::StrCat(who, " did not arrive at ", Describe(collective.operation()),
                   " within ", timeout.count(), " ms", more,
                   "; if it is alive and slow, raise --timeout"));
}

absl::Status Communicator::RunRows(Collective& collective, const void* input,
                                   const int64_t* to, void* output) {
  return absl::UnimplementedError(
      absl::StrCat(Describe(rank()), " cannot run ",
                   comm::Describe(collective.operation())));
}

absl::Status Communicator::Expect(Collective& transfer, void* output) {
  return absl::OkStatus();
}

absl::Status Communicator::Await(Collective& transfer, void* output) {
  return Run(transfer, output, output);
}

absl::StatusOr<std::vector<std::string>> Communicator::GatherTexts(
    const std::string& own, const std::string& what, int timeout_factor) {
  const size_t count = static_cast<size_t>(size());
  constexpr size_t kEntry = kTextBytes + 1;
  std::string entry = own.substr(0, kTextBytes);
  entry.resize(kEntry);
  std::string all(count * kEntry, '\0');
  Operation operation;
  operation.kind = Kind::kAllGather;
  operation.dtype = base::DType::kU8;
  operation.input_shape = {1, kEntry};
  operation.output_shape = {size(), kEntry};
  operation.dim = 0;
  operation.timeout_factor = timeout_factor;
  operation.name = what;
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<Collective> gather,
                           Prepare(std::move(operation), std::move(ranks)));
  PARTITA_RETURN_IF_ERROR(Run(*gather, entry.data(), all.data()));
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) texts.emplace_back(&all[i * kEntry]);
  return texts;
}

absl::Status Communicator::Agree(const absl::Status& status,
                                 int timeout_factor) {
  if (size() == 1) {
    agreed_ = !status.ok();
    return status;
  }
  // Empty if OK, else the code as one character, then the message.
  std::string own;
  if (!status.ok())
    own = absl::StrCat(std::string(1, static_cast<char>(status.code())),
                       std::string(status.message()));
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                           GatherTexts(own, "agreement", timeout_factor));
  const auto failed = [](const std::string& text) { return !text.empty(); };
  const auto lowest = std::find_if(all.begin(), all.end(), failed);
  agreed_ = lowest != all.end();
  if (!agreed_) return absl::OkStatus();
  const bool everyone = std::all_of(all.begin(), all.end(), failed);
  const std::string text = lowest->substr(1);
  return absl::Status(
      static_cast<absl::StatusCode>(lowest->front()),
      everyone ? text
               : absl::StrCat(Describe(static_cast<int>(lowest - all.begin())),
                              ": ", text));
}

}  // namespace partita::comm
