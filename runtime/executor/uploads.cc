// Two events order the upload stream and the compute stream.
#include "runtime/executor/uploads.h"

#include "runtime/base/status_macros.h"

namespace partita::executor {

absl::StatusOr<std::unique_ptr<Uploads>> Uploads::Make(
    device::Device& device, const std::vector<int64_t>& input_bytes) {
  std::unique_ptr<Uploads> uploads(new Uploads(device));
  uploads->inputs_.resize(input_bytes.size());
  for (size_t i = 0; i < input_bytes.size(); ++i) {
    if (input_bytes[i] == 0) continue;
    PARTITA_ASSIGN_OR_RETURN(uploads->inputs_[i].memory,
                             device::Allocation::Make(device, input_bytes[i]));
  }
  PARTITA_ASSIGN_OR_RETURN(uploads->uploaded_, device.CreateEvent());
  PARTITA_ASSIGN_OR_RETURN(uploads->taken_, device.CreateEvent());
  PARTITA_ASSIGN_OR_RETURN(uploads->stream_, device.CreateStream());
  return uploads;
}

Uploads::~Uploads() {
  if (stream_ != nullptr) device_.Synchronize(*stream_).IgnoreError();
}

absl::Status Uploads::Begin(const std::vector<ConstTensor>& inputs) {
  PARTITA_RETURN_IF_ERROR(device_.Wait(*stream_, *taken_));
  for (size_t i = 0; i < inputs_.size() && i < inputs.size(); ++i) {
    Input& input = inputs_[i];
    if (inputs[i].data == nullptr || input.memory.bytes() == 0) continue;
    PARTITA_RETURN_IF_ERROR(device_.CopyToDevice(
        *stream_, input.memory.data(), inputs[i].data, input.memory.bytes()));
    input.host = inputs[i].data;
  }
  return device_.Record(*stream_, *uploaded_);
}

absl::StatusOr<bool> Uploads::Take(device::Stream& stream, size_t index,
                                   const void* host, void* target) {
  Input& input = inputs_[index];
  if (input.host == nullptr || input.host != host) return false;
  if (!takes_) PARTITA_RETURN_IF_ERROR(device_.Wait(stream, *uploaded_));
  takes_ = true;
  PARTITA_RETURN_IF_ERROR(
      device_.Copy(stream, target, input.memory.data(), input.memory.bytes()));
  return true;
}

absl::Status Uploads::End(device::Stream& stream) {
  for (Input& input : inputs_) input.host = nullptr;
  takes_ = false;
  return device_.Record(stream, *taken_);
}

int64_t Uploads::bytes() const {
  int64_t bytes = 0;
  for (const Input& input : inputs_) bytes += input.memory.bytes();
  return bytes;
}

}  // namespace partita::executor
