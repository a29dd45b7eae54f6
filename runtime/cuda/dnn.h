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

// The library's functions and a handle for the calling thread's context.
struct Dnn {
#define PARTITA_CUDA_MEMBER(member, symbol, parameters) \
  DnnStatus(*member) parameters = nullptr;
  PARTITA_CUDA_DNN_FUNCTIONS(PARTITA_CUDA_MEMBER)
#undef PARTITA_CUDA_MEMBER
  const char* (*ErrorText)(DnnStatus status) = nullptr;
  size_t (*Version)() = nullptr;
  DnnHandle handle = nullptr;

  // libcudnn.so.9, or the library at `path`. FailedPrecondition, with what to
  // do, where there is none.
  static absl::StatusOr<std::unique_ptr<Dnn>> Open(const std::string& path);
  Dnn() = default;
  Dnn(const Dnn&) = delete;
  ~Dnn();

  // In the library's words: Unimplemented for what it does not do, as it says
  // or as it refuses what describes it; Internal for what went wrong, and where
  // the driver or a library that it needs is missing or of another version.
  absl::Status Check(DnnStatus status, const std::string& doing) const;
};

// One descriptor of the library's. Its setters remember the first error, which
// Finalize returns.
class DnnDescriptor {
 public:
  // `dnn` outlives it.
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
  // How many of at most `most` values there are. Errors as Dnn::Check's.
  absl::StatusOr<int64_t> Get(DnnAttribute attribute, DnnType type,
                              void* values, int64_t most = 1) const;

 private:
  const Dnn& dnn_;
  DnnObject object_ = nullptr;
  DnnStatus first_error_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_DNN_H_
