// Fuzzes the artifact reader and the executor's binding. Any bytes are refused
// with a message, or load and run on the null device. Checksums are not
// verified, and the header's checksum is repaired, so that damage reaches the
// program.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/checksum.h"
#include "runtime/device/null_device.h"
#include "runtime/executor/executor.h"
#include "runtime/program/artifact.h"
#include "runtime/program/mesh.h"

namespace {

using partita::executor::ConstTensor;
using partita::executor::Executor;
using partita::executor::MutableTensor;
using partita::executor::TensorSpec;

// Skip larger tensors to save memory.
constexpr int64_t kMaxBytes = 1 << 20;

// The header as described in artifact.h.
void RepairHeader(std::string& file) {
  if (file.size() < 128) return;
  std::memcpy(file.data(), "PARTITA\0\0\0\0\0\x03\0\0", 16);
  const uint32_t version = partita::program::kFormatVersion;
  std::memcpy(file.data() + 8, &version, 4);
  const uint64_t size = file.size();
  std::memcpy(file.data() + 16, &size, 8);
  const uint32_t crc =
      partita::base::Crc32(std::string_view(file).substr(0, 96));
  std::memcpy(file.data() + 96, &crc, 4);
}

// A file that exists only in memory.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes)
      : descriptor_(memfd_create("artifact", MFD_CLOEXEC)) {
    if (write(descriptor_, bytes.data(), bytes.size()) !=
        static_cast<ssize_t>(bytes.size()))
      abort();
  }
  ~MemoryFile() { close(descriptor_); }
  std::string path() const {
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

void Run(Executor& executor) {
  std::vector<std::string> memory;
  const auto add = [&](const TensorSpec& spec) {
    memory.emplace_back(static_cast<size_t>(spec.bytes), '\0');
    return memory.back().data();
  };
  int64_t bytes = 0;
  for (const auto* specs : {&executor.inputs(), &executor.outputs()}) {
    for (const TensorSpec& spec : *specs)
      bytes = std::min(kMaxBytes, bytes + std::min(kMaxBytes, spec.bytes));
  }
  if (bytes == kMaxBytes) return;
  memory.reserve(executor.inputs().size() + executor.outputs().size());
  std::vector<ConstTensor> inputs;
  for (const TensorSpec& spec : executor.inputs())
    inputs.push_back({spec.dtype, spec.shape, add(spec)});
  std::vector<MutableTensor> outputs;
  for (const TensorSpec& spec : executor.outputs())
    outputs.push_back({spec.dtype, spec.shape, add(spec)});
  if (!executor.Run(inputs, outputs).ok()) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  RepairHeader(bytes);
  const MemoryFile file(bytes);
  partita::device::NullDevice device;
  partita::executor::LoadOptions options;
  options.verify_checksums = false;
  const absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::Load(file.path(), device, options);
  if (executor.ok()) {
    // Computing labels checks the geometry of every collective.
    const auto* mesh = (*executor)->artifact().program().mesh();
    if (partita::program::SizeOf(mesh) <= 64) (*executor)->EnableProfile();
    Run(**executor);
  } else if (executor.status().message().empty()) {
    abort();
  }
  return 0;
}
