// Reads and replaces this device's blocks of parameters.
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/executor.h"

namespace partita::executor {
namespace {

absl::Status Named(const std::string& name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("parameter '", name,
                                                  "': ", status.message()));
}

}  // namespace

absl::Status Executor::ReadParameter(const std::string& name,
                                     const MutableTensor& block) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(parameters_, name));
  PARTITA_RETURN_IF_ERROR(CheckParameterTensor(
      spec->local, {block.dtype, block.shape, block.data}));
  return Named(name, weights_->Read(spec->index, block.data));
}

absl::Status Executor::WriteParameter(const std::string& name,
                                      const ConstTensor& block) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(parameters_, name));
  PARTITA_RETURN_IF_ERROR(CheckParameterTensor(spec->local, block));
  PARTITA_RETURN_IF_ERROR(CheckUpdated(*spec));
  return Named(name, weights_->Write(spec->index, block.data));
}

}  // namespace partita::executor
