// Holds the parameters of a program in device memory.
#ifndef PARTITA_RUNTIME_EXECUTOR_WEIGHTS_H_
#define PARTITA_RUNTIME_EXECUTOR_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/mapped_file.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"
#include "runtime/executor/block_map.h"
#include "runtime/executor/state_store.h"
#include "runtime/program/artifact.h"
#include "runtime/program/mesh.h"

namespace partita::executor {

// A buffer that outlives a run: a parameter or a derived value.
struct Global {
  char* data = nullptr;  // on the device; null: not loaded, because no step
                         // uses it, or in the state store
  int64_t bytes = 0;
  device::Allocation owned;  // empty if `data` is in a mapped file
  // The file that holds `data`, or null.
  const base::MappedFile* mapped = nullptr;
  bool host = false;     // `owned` is host memory that the device can reach
  int64_t released = 0;  // bytes of `owned` given back to the system
};

class Weights {
 public:
  // How steps use a parameter, for `Load`.
  struct Use {
    bool used = false;
    // A kernel reads it, so it must be 64-byte aligned; libraries take any
    // address.
    bool aligned = false;
    // Steps write it, so it must not be in a mapped file.
    bool updated = false;
  };

  // Sources and target of loading; all must outlive the weights.
  struct Context {
    const program::Artifact& artifact;
    device::Device& device;
    device::Stream& stream;
    const program::MeshPlace& place;
    comm::Communicator* communicator;  // null: no other rank waits
    std::string folder;                // base of relative paths
    // Another program's tensors on the same device, whose states and updated
    // parameters are used in place of own ones; must outlive the weights. Null:
    // none.
    const Weights* states = nullptr;
    // Holds states in a file; must outlive the weights. Null: none are.
    StateStore* store = nullptr;
  };

  // Loads this device's blocks. A block stays in its mapped file if its type,
  // alignment and position allow it; else it is copied and converted. Errors
  // name the parameter and the file.
  static absl::StatusOr<std::unique_ptr<Weights>> Load(
      const Context& context, const std::vector<Use>& uses);

  // Reserves memory for the entry's derived values, after the parameters.
  absl::Status AddDerived(const program::Entry& entry);

  // Parameters, then derived values: the order of Entry.main_globals.
  const std::vector<Global>& globals() const { return globals_; }

  // Frees the memory of a global that no later step reads.
  void Release(size_t index);

  // Copies this device's block of a parameter to host memory: its value after
  // the last step, or its source if nothing updates it and it was released.
  absl::Status Read(size_t index, void* host);
  // Replaces this device's block. Call only for parameters that are updated.
  absl::Status Write(size_t index, const void* host);

  // Bytes of device memory still held, of host memory, and of mapped files.
  int64_t OwnedBytes() const;
  int64_t HostBytes() const;
  int64_t MappedBytes() const;

 private:
  explicit Weights(const Context& context) : context_(context) {}
  bool InStore(size_t index) const {
    return context_.store != nullptr && context_.store->Has(index);
  }
  absl::Status LoadParameter(const program::Parameter& parameter,
                             const Use& use, Global& global);
  // True for a state, and for a parameter that steps of context.states change.
  bool IsShared(const program::Parameter& parameter) const;
  // Uses the tensor of this name of context.states. FailedPrecondition if there
  // is none of the same kind and type.
  absl::Status ShareState(const program::Parameter& parameter, Global& global);
  absl::Status LoadStored(const base::MappedFile& file, uint64_t offset,
                          program::DType stored, base::DType dtype,
                          const BlockMap& block, const Use& use,
                          Global& global);
  absl::Status LoadParts(const program::PartsSource& source, base::DType dtype,
                         const BlockMap& block, Global& global);
  absl::Status LoadSeeded(const program::SeedSource& source, base::DType dtype,
                          const BlockMap& block, Global& global);
  absl::Status LoadCoordinate(const program::CoordinateSource& source,
                              Global& global);
  absl::Status Allocate(Global& global);
  // Opens the file of a source, which must have the source's bytes.
  absl::StatusOr<const base::MappedFile*> OpenFile(
      const program::FileSource& source);

  const Context context_;
  std::map<std::string, std::unique_ptr<base::MappedFile>> files_;
  std::vector<Use> uses_;
  std::vector<Global> globals_;
  // The parameters of context.states by name, with their indices.
  std::map<std::string, size_t> others_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_WEIGHTS_H_
