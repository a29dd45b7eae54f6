// cuDNN, opened at run time.
#ifndef PARTITA_RUNTIME_CUDA_DNN_H_
#define PARTITA_RUNTIME_CUDA_DNN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/dnn_api.h"

namespace partita::cuda {

// The library's functions, and a handle for the calling thread's context.
struct Dnn {
#define PARTITA_CUDA_MEMBER(member, symbol, parameters) \
  DnnStatus(*member) parameters = nullptr;
  PARTITA_CUDA_DNN_FUNCTIONS(PARTITA_CUDA_MEMBER)
#undef PARTITA_CUDA_MEMBER
  const char* (*ErrorText)(DnnStatus status) = nullptr;
  size_t (*Version)() = nullptr;
  DnnHandle handle = nullptr;

  // Opens the installed cuDNN 9 (library_names.h), or the library at `path`.
  // FailedPrecondition, with advice, if it cannot be loaded or does not start.
  static absl::StatusOr<std::unique_ptr<Dnn>> Open(const std::string& path,
                                                   int driver_version);
  // The same for planning without a GPU: there is no handle.
  static absl::StatusOr<std::unique_ptr<Dnn>> OpenWithoutGpu(
      const std::string& path);
  Dnn() = default;
  Dnn(const Dnn&) = delete;
  ~Dnn();

  // Converts a status, with the library's message. Unimplemented if the library
  // does not support the operation or rejects its description. Internal for any
  // other failure, and if the driver or a library that cuDNN needs is missing
  // or has the wrong version.
  absl::Status Check(DnnStatus status, const std::string& doing) const;
};

// A descriptor of the library. Setters remember the first error, which Finalize
// returns.
class DnnDescriptor {
 public:
  // `dnn` must outlive the descriptor.
  DnnDescriptor(const Dnn& dnn, DnnKind kind);
  DnnDescriptor(const DnnDescriptor&) = delete;
  ~DnnDescriptor();

  DnnObject get() const { return object_; }
  void Set(DnnAttribute attribute, DnnType type, const void* values,
           int64_t count = 1);
  void Set(DnnAttribute attribute, const std::vector<int64_t>& values) {
    Set(attribute, kDnnTypeInt64, values.data(),
        static_cast<int64_t>(values.size()));
  }
  void Set(DnnAttribute attribute, const DnnDescriptor& other) {
    Set(attribute, kDnnTypeObject, &other.object_);
  }
  absl::Status Finalize(const std::string& doing);
  // Reads up to `most` values and returns their number. Errors are from
  // Dnn::Check.
  absl::StatusOr<int64_t> Get(DnnAttribute attribute, DnnType type,
                              void* values, int64_t most = 1) const;

 private:
  const Dnn& dnn_;
  DnnObject object_ = nullptr;
  DnnStatus first_error_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_DNN_H_
