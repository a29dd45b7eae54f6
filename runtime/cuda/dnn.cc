// Opens cuDNN.
#include "runtime/cuda/dnn.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/library.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/library_names.h"

namespace partita::cuda {
namespace {

// True if the status means that the library, correctly installed, does not
// support the request.
bool Refuses(DnnStatus status) {
  switch (status) {
    case kDnnIncompatibleDriver:
    case kDnnIncompatibleRuntime:
    case kDnnPrerequisiteMissing:
    case kDnnSublibraryUnavailable:
      return false;
    default:
      return KindOf(status) == kDnnNotSupported ||
             KindOf(status) == kDnnBadParameter;
  }
}

}  // namespace

namespace {

constexpr char kAdvice[] =
    "install it, or set LD_LIBRARY_PATH to where it lies";

absl::StatusOr<std::unique_ptr<Dnn>> Load(const std::string& name) {
  PARTITA_ASSIGN_OR_RETURN(const base::Library library,
                           base::Library::Open({name}, "cuDNN", kAdvice));
  auto dnn = std::make_unique<Dnn>();
#define PARTITA_CUDA_LOAD(member, symbol, parameters) \
  PARTITA_RETURN_IF_ERROR(library.Load(#symbol, &dnn->member));
  PARTITA_CUDA_DNN_FUNCTIONS(PARTITA_CUDA_LOAD)
#undef PARTITA_CUDA_LOAD
  PARTITA_RETURN_IF_ERROR(library.Load("cudnnGetErrorString", &dnn->ErrorText));
  PARTITA_RETURN_IF_ERROR(library.Load("cudnnGetVersion", &dnn->Version));
  return dnn;
}

absl::StatusOr<std::unique_ptr<Dnn>> OpenOne(const std::string& name) {
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<Dnn> dnn, Load(name));
  const absl::Status started =
      dnn->Check(dnn->Create(&dnn->handle), absl::StrCat("starting ", name));
  if (!started.ok())
    return absl::FailedPreconditionError(std::string(started.message()));
  return dnn;
}

// The names to try, in order.
std::vector<std::string> Names(int driver_version) {
  return LibraryNames({"libcudnn.so", "cudnn", {9}}, driver_version);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dnn>> Dnn::OpenWithoutGpu(
    const std::string& path) {
  if (!path.empty()) return Load(path);
  return OpenFirst<std::unique_ptr<Dnn>>(Names(0), "cuDNN", kAdvice, &Load);
}

absl::StatusOr<std::unique_ptr<Dnn>> Dnn::Open(const std::string& path,
                                               int driver_version) {
  if (!path.empty()) return OpenOne(path);
  return OpenFirst<std::unique_ptr<Dnn>>(Names(driver_version), "cuDNN",
                                         kAdvice, &OpenOne);
}

Dnn::~Dnn() {
  if (handle != nullptr) Destroy(handle);
}

absl::Status Dnn::Check(DnnStatus status, const std::string& doing) const {
  if (status == kDnnSuccess) return absl::OkStatus();
  const char* const text = ErrorText(status);
  return absl::Status(
      Refuses(status) ? absl::StatusCode::kUnimplemented
                      : absl::StatusCode::kInternal,
      absl::StrCat(doing, ": cuDNN says ", text == nullptr ? "" : text, " (",
                   static_cast<int>(status),
                   "); CUDNN_LOGLEVEL_DBG=2 in the environment tells more"));
}

DnnDescriptor::DnnDescriptor(const Dnn& dnn, DnnKind kind)
    : dnn_(dnn), first_error_(dnn.CreateObject(kind, &object_)) {}

DnnDescriptor::~DnnDescriptor() {
  if (object_ != nullptr) dnn_.DestroyObject(object_);
}

void DnnDescriptor::Set(DnnAttribute attribute, DnnType type,
                        const void* values, int64_t count) {
  if (first_error_ == kDnnSuccess)
    first_error_ = dnn_.SetAttribute(object_, attribute, type, count, values);
}

absl::Status DnnDescriptor::Finalize(const std::string& doing) {
  if (first_error_ == kDnnSuccess) first_error_ = dnn_.Finalize(object_);
  return dnn_.Check(first_error_, first_error_ == kDnnSuccess ? "" : doing);
}

absl::StatusOr<int64_t> DnnDescriptor::Get(DnnAttribute attribute, DnnType type,
                                           void* values, int64_t most) const {
  int64_t count = 0;
  const DnnStatus status =
      dnn_.GetAttribute(object_, attribute, type, most, &count, values);
  if (status == kDnnSuccess) return count;
  return dnn_.Check(status, absl::StrCat("asking for attribute ",
                                         static_cast<int>(attribute)));
}

}  // namespace partita::cuda
