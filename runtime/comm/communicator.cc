// What all communicators share.
#include "runtime/comm/communicator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::comm {
namespace {

// Bytes of a status as ranks exchange it: its code, then its message, cut.
constexpr size_t kStatusBytes = 2048;

}  // namespace

CommOptions OptionsFromEnvironment() {
  CommOptions options;
  const char* text = std::getenv("PARTITA_COMM_TIMEOUT");
  double seconds;
  if (text != nullptr && absl::SimpleAtod(text, &seconds) && seconds > 0 &&
      seconds < 1e6)
    options.patience =
        std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000) + 1);
  return options;
}

Collective::Collective(Operation operation, std::vector<int> ranks, int index)
    : operation_(std::move(operation)),
      ranks_(std::move(ranks)),
      index_(index),
      fingerprint_(Fingerprint(operation_)) {}

absl::Status DidNotArrive(const std::string& who, const Collective& collective,
                          std::chrono::milliseconds patience,
                          const std::string& more) {
  return absl::DeadlineExceededError(
      absl::StrCat(who, " did not arrive at ", Describe(collective.operation()),
                   " within ", patience.count(), " ms", more,
                   "; if it is alive and slow, raise --timeout"));
}

absl::Status Communicator::Agree(const absl::Status& status, int patience) {
  if (size() == 1) {
    agreed_ = !status.ok();
    return status;
  }
  Operation operation;
  operation.kind = Kind::kAllGather;
  operation.dtype = base::DType::kU8;
  operation.input_shape = {1, kStatusBytes};
  operation.output_shape = {size(), kStatusBytes};
  operation.dim = 0;
  operation.patience = patience;
  operation.name = "agreement";
  std::vector<int> ranks(static_cast<size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<Collective> gather,
                           Prepare(std::move(operation), std::move(ranks)));
  std::string own(kStatusBytes, '\0');
  std::string all(static_cast<size_t>(size()) * kStatusBytes, '\0');
  own[0] = static_cast<char>(status.code());
  const std::string message(status.message());
  std::memcpy(&own[1], message.data(),
              std::min(message.size(), kStatusBytes - 2));
  PARTITA_RETURN_IF_ERROR(Run(*gather, own.data(), all.data()));
  int lowest = size();
  int failures = 0;
  for (int i = size() - 1; i >= 0; --i) {
    if (all[static_cast<size_t>(i) * kStatusBytes] == 0) continue;
    lowest = i;
    ++failures;
  }
  agreed_ = failures > 0;
  if (failures == 0) return absl::OkStatus();
  const char* entry = &all[static_cast<size_t>(lowest) * kStatusBytes];
  const std::string text = entry + 1;
  return absl::Status(
      static_cast<absl::StatusCode>(entry[0]),
      failures == size() ? text : absl::StrCat(Describe(lowest), ": ", text));
}

}  // namespace partita::comm
