// Forks and joins streams with events. A waiting stream captures the event's
// latest recording at the call, so one event serves all forks.
#include "runtime/executor/device_exchange.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::executor {

absl::StatusOr<std::unique_ptr<comm::Collective>> DeviceExchange::Prepare(
    const comm::Operation& operation, const std::vector<int>& ranks,
    bool started) {
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<comm::Collective> collective,
                           communicator_.Prepare(operation, ranks, started));
  if (collective == nullptr || !started) return collective;
  PARTITA_RETURN_IF_ERROR(MakeStream(
      operation.kind == comm::Kind::kTransfer ? transfers_[ranks] : beside_));
  return collective;
}

absl::Status DeviceExchange::MakeStream(
    std::unique_ptr<device::Stream>& stream) {
  if (stream == nullptr) {
    PARTITA_ASSIGN_OR_RETURN(stream, device_.CreateStream());
  }
  if (begun_ == nullptr) {
    PARTITA_ASSIGN_OR_RETURN(begun_, device_.CreateEvent());
  }
  return absl::OkStatus();
}

void DeviceExchange::Begin() {
  for (auto& [token, event] : done_) unused_.push_back(std::move(event));
  done_.clear();
  to_join_.clear();
}

absl::Status DeviceExchange::Run(device::Stream& stream,
                                 comm::Collective& collective,
                                 const void* input, void* output) {
  return communicator_.Enqueue(collective, input, output,
                               stream.native_handle());
}

absl::Status DeviceExchange::RunRows(device::Stream& stream,
                                     comm::Collective& collective,
                                     const void* input, const void* to,
                                     void* output) {
  return communicator_.EnqueueRows(collective, input, to, output,
                                   stream.native_handle());
}

absl::Status DeviceExchange::Start(device::Stream& stream,
                                   comm::Collective& collective,
                                   const void* input, void* output,
                                   int64_t token) {
  device::Stream& beside = collective.operation().kind == comm::Kind::kTransfer
                               ? *transfers_.at(collective.ranks())
                               : *beside_;
  PARTITA_RETURN_IF_ERROR(device_.Record(stream, *begun_));
  PARTITA_RETURN_IF_ERROR(device_.Wait(beside, *begun_));
  PARTITA_RETURN_IF_ERROR(
      communicator_.Enqueue(collective, input, output, beside.native_handle()));
  if (MeetsOnHosts()) {
    to_join_[token] = &collective;
    return absl::OkStatus();
  }
  std::unique_ptr<device::Event> done;
  if (unused_.empty()) {
    PARTITA_ASSIGN_OR_RETURN(done, device_.CreateEvent());
  } else {
    done = std::move(unused_.back());
    unused_.pop_back();
  }
  PARTITA_RETURN_IF_ERROR(device_.Record(beside, *done));
  done_[token] = std::move(done);
  return absl::OkStatus();
}

absl::Status DeviceExchange::Await(device::Stream& stream, int64_t token) {
  if (const auto found = to_join_.find(token); found != to_join_.end()) {
    comm::Collective& collective = *found->second;
    to_join_.erase(found);
    return communicator_.Join(collective, stream.native_handle());
  }
  const auto found = done_.find(token);
  if (found == done_.end())
    return absl::InternalError(
        absl::StrCat("token ", token, " is not started"));
  unused_.push_back(std::move(found->second));
  done_.erase(found);
  return device_.Wait(stream, *unused_.back());
}

absl::Status DeviceExchange::Synchronize(device::Stream& stream) {
  PARTITA_RETURN_IF_ERROR(communicator_.Await(stream.native_handle()));
  return beside_ == nullptr ? absl::OkStatus()
                            : communicator_.Await(beside_->native_handle());
}

}  // namespace partita::executor
