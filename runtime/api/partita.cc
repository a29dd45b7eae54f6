// The C functions: check pointers, then call LoadedModel.
#include "runtime/api/partita.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/api/error.h"
#include "runtime/api/loaded_model.h"
#include "runtime/api/read_options.h"
#include "runtime/api/tensors.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/version.h"

struct partita_session {
  std::unique_ptr<partita::api::LoadedModel> model;
};

namespace {

using partita::api::CheckGiven;
using partita::api::Guard;
using partita::api::LoadedModel;
using partita::base::TensorSpec;
using partita::executor::RankGroup;

absl::Status CheckSession(const partita_session* session) {
  return CheckGiven(session, "a session that partita_open opened");
}

absl::Status Open(const char* path, const partita_options& options,
                  partita_session** session) {
  PARTITA_RETURN_IF_ERROR(CheckGiven(path, "the path of a compiled model"));
  PARTITA_RETURN_IF_ERROR(CheckGiven(session, "where to store the session"));
  PARTITA_ASSIGN_OR_RETURN(const partita::session::SessionOptions loading,
                           partita::api::ReadOptions(path, options));
  PARTITA_ASSIGN_OR_RETURN(
      std::unique_ptr<LoadedModel> model,
      LoadedModel::Open(loading, options.join_job != 0, options.seed));
  auto opened = std::make_unique<partita_session>();
  opened->model = std::move(model);
  *session = opened.release();
  return absl::OkStatus();
}

absl::Status Describe(const RankGroup& ranks,
                      const std::vector<TensorSpec>& specs, size_t index,
                      bool is_input, partita_tensor_info* info) {
  PARTITA_RETURN_IF_ERROR(CheckGiven(info, "where to store the description"));
  if (index >= specs.size())
    return absl::InvalidArgumentError(absl::StrCat(
        "expected an index below ", specs.size(), ", found ", index));
  const TensorSpec& spec = specs[index];
  *info = {};
  info->name = spec.name.c_str();
  info->shape = spec.shape.data();
  info->ndim = static_cast<int32_t>(spec.shape.size());
  info->type = partita::api::TypeOf(spec.dtype);
  info->bytes = spec.bytes;
  if (is_input) {
    info->role = static_cast<partita_role>(
        ranks.program().inputs()->Get(static_cast<unsigned>(index))->role());
    info->limit = ranks.LimitOf(spec.name);
  }
  return absl::OkStatus();
}

absl::Status DescribeParameter(const RankGroup& ranks, size_t index,
                               partita_parameter_info* info) {
  PARTITA_RETURN_IF_ERROR(CheckGiven(info, "where to store the description"));
  if (index >= ranks.parameters().size())
    return absl::InvalidArgumentError(absl::StrCat("expected an index below ",
                                                   ranks.parameters().size(),
                                                   ", found ", index));
  const partita::executor::ParameterSpec& parameter = ranks.parameters()[index];
  *info = {};
  info->name = parameter.whole.name.c_str();
  info->shape = parameter.whole.shape.data();
  info->ndim = static_cast<int32_t>(parameter.whole.shape.size());
  info->type = partita::api::TypeOf(parameter.whole.dtype);
  info->bytes = parameter.whole.bytes;
  info->is_state =
      parameter.kind == partita::program::ParameterKind::state ? 1 : 0;
  info->is_updated = parameter.updated ? 1 : 0;
  return absl::OkStatus();
}

// `tensors` may be NULL if `count` is 0.
absl::Status CheckTensors(const partita_tensor* tensors, size_t count) {
  return count == 0 ? absl::OkStatus() : CheckGiven(tensors, "tensors");
}

}  // namespace

uint32_t partita_abi_version(void) { return PARTITA_ABI_VERSION; }

const char* partita_version(void) { return partita::base::kVersion; }

partita_status partita_open(const char* path, const partita_options* options,
                            partita_session** session) {
  const partita_options defaults = PARTITA_OPTIONS;
  return Guard(
      [&] { return Open(path, options ? *options : defaults, session); });
}

void partita_close(partita_session* session) {
  Guard([&] {
    delete session;
    return absl::OkStatus();
  });
}

int32_t partita_device_count(const partita_session* session) {
  return session ? session->model->ranks().devices() : 0;
}

int32_t partita_rank(const partita_session* session) {
  return session ? session->model->ranks().rank() : 0;
}

int32_t partita_process_count(const partita_session* session) {
  return session ? session->model->ranks().processes() : 0;
}

size_t partita_input_count(const partita_session* session) {
  return session ? session->model->ranks().inputs().size() : 0;
}

size_t partita_output_count(const partita_session* session) {
  return session ? session->model->ranks().outputs().size() : 0;
}

partita_status partita_input(const partita_session* session, size_t index,
                             partita_tensor_info* info) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckSession(session));
    const RankGroup& loaded = session->model->ranks();
    return Describe(loaded, loaded.inputs(), index, /*is_input=*/true, info);
  });
}

partita_status partita_output(const partita_session* session, size_t index,
                              partita_tensor_info* info) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckSession(session));
    const RankGroup& loaded = session->model->ranks();
    return Describe(loaded, loaded.outputs(), index, /*is_input=*/false, info);
  });
}

partita_status partita_new_output(const partita_session* session, size_t index,
                                  partita_managed_tensor** tensor) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckSession(session));
    PARTITA_RETURN_IF_ERROR(CheckGiven(tensor, "where to store the tensor"));
    const std::vector<TensorSpec>& specs = session->model->ranks().outputs();
    if (index >= specs.size())
      return absl::InvalidArgumentError(absl::StrCat(
          "expected an index below ", specs.size(), ", found ", index));
    PARTITA_ASSIGN_OR_RETURN(*tensor, partita::api::NewTensor(specs[index]));
    return absl::OkStatus();
  });
}

partita_status partita_run(partita_session* session,
                           const partita_tensor* inputs, size_t input_count,
                           const partita_tensor* outputs, size_t output_count) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckSession(session));
    PARTITA_RETURN_IF_ERROR(CheckTensors(inputs, input_count));
    PARTITA_RETURN_IF_ERROR(CheckTensors(outputs, output_count));
    return session->model->Run(inputs, input_count, outputs, output_count);
  });
}

partita_status partita_train_step(partita_session* session,
                                  const partita_tensor* data, size_t count,
                                  double learning_rate, double* loss) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckSession(session));
    PARTITA_RETURN_IF_ERROR(CheckTensors(data, count));
    PARTITA_RETURN_IF_ERROR(CheckGiven(loss, "where to store the loss"));
    PARTITA_ASSIGN_OR_RETURN(
        *loss, session->model->TrainStep(data, count, learning_rate));
    return absl::OkStatus();
  });
}

int64_t partita_step(const partita_session* session) {
  return session ? session->model->step() : 0;
}

size_t partita_parameter_count(const partita_session* session) {
  return session ? session->model->ranks().parameters().size() : 0;
}

partita_status partita_parameter(const partita_session* session, size_t index,
                                 partita_parameter_info* info) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckSession(session));
    return DescribeParameter(session->model->ranks(), index, info);
  });
}

partita_status partita_read_parameter(partita_session* session,
                                      const char* name,
                                      const partita_tensor* tensor) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckSession(session));
    PARTITA_RETURN_IF_ERROR(CheckGiven(name, "a parameter's name"));
    PARTITA_RETURN_IF_ERROR(CheckGiven(tensor, "a tensor"));
    return session->model->ReadParameter(name, *tensor);
  });
}

partita_status partita_write_parameter(partita_session* session,
                                       const char* name,
                                       const partita_tensor* tensor) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckSession(session));
    PARTITA_RETURN_IF_ERROR(CheckGiven(name, "a parameter's name"));
    PARTITA_RETURN_IF_ERROR(CheckGiven(tensor, "a tensor"));
    return session->model->WriteParameter(name, *tensor);
  });
}

partita_status partita_save_checkpoint(partita_session* session,
                                       const char* folder) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckSession(session));
    PARTITA_RETURN_IF_ERROR(CheckGiven(folder, "a folder"));
    return session->model->SaveCheckpoint(folder);
  });
}

partita_status partita_load_checkpoint(partita_session* session,
                                       const char* folder) {
  return Guard([&]() -> absl::Status {
    PARTITA_RETURN_IF_ERROR(CheckSession(session));
    PARTITA_RETURN_IF_ERROR(CheckGiven(folder, "a folder"));
    return session->model->LoadCheckpoint(folder);
  });
}
