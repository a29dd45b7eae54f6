// Copies device to host, exchanges with other ranks, copies host to device.
#include "runtime/executor/host_exchange.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::executor {
namespace {

int64_t ToBytes(const comm::Operation& operation) {
  return operation.size * static_cast<int64_t>(sizeof(int64_t));
}

}  // namespace

absl::Status HostExchange::Memory::Reserve(int64_t wanted) {
  if (wanted <= bytes) return absl::OkStatus();
  const size_t size = static_cast<size_t>(wanted + 63) / 64 * 64;
  data.reset(static_cast<char*>(std::aligned_alloc(64, size)));
  bytes = data == nullptr ? 0 : wanted;
  return data != nullptr
             ? absl::OkStatus()
             : absl::ResourceExhaustedError(absl::StrCat(
                   "cannot allocate ", wanted,
                   " bytes of host memory for what devices exchange"));
}

absl::Status HostExchange::Reserve(const comm::Operation& operation) {
  PARTITA_RETURN_IF_ERROR(input_.Reserve(operation.InputBytes()));
  if (comm::MovesRows(operation.kind))
    PARTITA_RETURN_IF_ERROR(to_.Reserve(ToBytes(operation)));
  return output_.Reserve(operation.OutputBytes());
}

absl::Status HostExchange::Run(comm::Communicator& communicator,
                               comm::Collective& collective,
                               device::Device& device, device::Stream& stream,
                               const void* input, void* output) {
  const comm::Operation& operation = collective.operation();
  const bool transfer = operation.kind == comm::Kind::kTransfer;
  if (!transfer || collective.index() == 0)
    PARTITA_RETURN_IF_ERROR(device.CopyToHost(stream, input_.data.get(), input,
                                              operation.InputBytes()));
  // Also waits until an earlier operation's output has been copied.
  PARTITA_RETURN_IF_ERROR(device.Synchronize(stream));
  PARTITA_RETURN_IF_ERROR(
      communicator.Run(collective, input_.data.get(), output_.data.get()));
  if (transfer && collective.index() == 0) return absl::OkStatus();
  return device.CopyToDevice(stream, output, output_.data.get(),
                             operation.OutputBytes());
}

absl::Status HostExchange::RunRows(comm::Communicator& communicator,
                                   comm::Collective& collective,
                                   device::Device& device,
                                   device::Stream& stream, const void* input,
                                   const void* to, void* output) {
  const comm::Operation& operation = collective.operation();
  PARTITA_RETURN_IF_ERROR(device.CopyToHost(stream, input_.data.get(), input,
                                            operation.InputBytes()));
  PARTITA_RETURN_IF_ERROR(
      device.CopyToHost(stream, to_.data.get(), to, ToBytes(operation)));
  PARTITA_RETURN_IF_ERROR(device.Synchronize(stream));
  PARTITA_RETURN_IF_ERROR(communicator.RunRows(
      collective, input_.data.get(),
      reinterpret_cast<const int64_t*>(to_.data.get()), output_.data.get()));
  return device.CopyToDevice(stream, output, output_.data.get(),
                             operation.OutputBytes());
}

}  // namespace partita::executor
