// Loads code and launches kernels.
#include "runtime/cuda/module.h"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/target.h"
#include "runtime/cuda/tensor_maps.h"
#include "runtime/program/code_bundle.h"

namespace partita::cuda {
namespace {

constexpr size_t kLogBytes = 8192;
constexpr size_t kMaxMessageBytes = 1500;

std::string CompilerMessage(std::string log) {
  log.resize(std::min(log.size(), log.find('\0')));
  while (!log.empty() && log.back() == '\n') log.pop_back();
  if (log.size() > kMaxMessageBytes)
    log = log.substr(0, kMaxMessageBytes) + " ...";
  return log.empty() ? log : absl::StrCat("; the compiler says: ", log);
}

// The machine code that runs on the GPU, the newest architecture first.
std::vector<std::string_view> MachineCodeFor(
    const Machine& machine, const program::CodeBundle& bundle) {
  std::map<std::string, std::string_view, std::greater<>> suitable;
  for (const program::MachineCode& code : bundle.machine)
    if (RunsMachineCode(machine, code.architecture))
      suitable[code.architecture] = code.code;
  std::vector<std::string_view> codes;
  for (const auto& [architecture, code] : suitable) codes.push_back(code);
  return codes;
}

}  // namespace

CudaKernel::CudaKernel(std::shared_ptr<Context> context, std::string name,
                       CuFunction function)
    : context_(std::move(context)),
      name_(std::move(name)),
      function_(function) {
  const auto info = context_->driver().ParameterInfo;
  if (info == nullptr) return;
  size_t offset = 0, bytes = 0, count = 0;
  while (info(function_, count, &offset, &bytes) == kCuSuccess) ++count;
  parameters_ = static_cast<int>(count);
}

absl::Status CudaKernel::CheckShape(const device::LaunchShape& shape,
                                    int count) const {
  const auto bad = [&](const std::string& text) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel ", name_, ": ", text, "; compile the model again"));
  };
  const int64_t threads =
      int64_t{1} * shape.block[0] * shape.block[1] * shape.block[2];
  for (size_t i = 0; i < 3; ++i) {
    if (shape.grid[i] < 0 || shape.block[i] < 1)
      return bad("expected a grid and a block of threads, found none");
  }
  if (threads > 1024)
    return bad(absl::StrCat("expected at most 1024 threads in a block, found ",
                            threads));
  if (parameters_ >= 0 && count != parameters_)
    return bad(
        absl::StrCat("it takes ", parameters_, " parameters, found ", count));
  if (shape.shared_bytes > context_->max_shared_bytes())
    return bad(absl::StrCat("it needs ", shape.shared_bytes,
                            " bytes of shared memory, this GPU has ",
                            context_->max_shared_bytes(), " for a block"));
  return absl::OkStatus();
}

absl::Status CudaKernel::Launch(CuStream stream,
                                const device::LaunchShape& shape,
                                void* const* buffers, int count,
                                void* scratch) const {
  auto* const maps = static_cast<CudaTensorMaps*>(shape.maps);
  const int map_count = maps == nullptr ? 0 : maps->count();
  const int all = count + map_count + (scratch != nullptr ? 1 : 0);
  PARTITA_RETURN_IF_ERROR(CheckShape(shape, all));
  if (*std::min_element(shape.grid.begin(), shape.grid.end()) == 0)
    return absl::OkStatus();
  if (maps != nullptr) PARTITA_RETURN_IF_ERROR(maps->Update(buffers));
  if (shape.shared_bytes > shared_bytes_) {
    PARTITA_RETURN_IF_ERROR(context_->Check(
        context_->driver().SetFunctionAttribute(
            function_, kCuMaxDynamicSharedBytes, shape.shared_bytes),
        "asking for shared memory"));
    shared_bytes_ = shape.shared_bytes;
  }
  constexpr int kInlineParameters = 64;
  void* few[kInlineParameters];
  std::vector<void*> many;
  void** parameters = few;
  if (all > kInlineParameters) {
    many.resize(static_cast<size_t>(all));
    parameters = many.data();
  }
  // The driver takes a pointer to each parameter.
  for (int i = 0; i < count; ++i)
    parameters[i] = const_cast<void**>(buffers + i);
  for (int i = 0; i < map_count; ++i)
    parameters[count + i] = maps->parameter(i);
  if (scratch != nullptr) parameters[all - 1] = &scratch;
  return Start(stream, shape, parameters);
}

absl::Status CudaKernel::LaunchTable(CuStream stream,
                                     const device::LaunchShape& shape,
                                     std::vector<uint64_t> table) const {
  PARTITA_RETURN_IF_ERROR(CheckShape(shape, 1));
  void* parameters[] = {table.data()};
  return Start(stream, shape, parameters);
}

absl::Status CudaKernel::Start(CuStream stream,
                               const device::LaunchShape& shape,
                               void** parameters) const {
  const auto u = [](int value) { return static_cast<unsigned>(value); };
  const CuResult result = context_->driver().Launch(
      function_, u(shape.grid[0]), u(shape.grid[1]), u(shape.grid[2]),
      u(shape.block[0]), u(shape.block[1]), u(shape.block[2]),
      u(shape.shared_bytes), stream, parameters, nullptr);
  return result == kCuSuccess
             ? absl::OkStatus()
             : context_->Check(result,
                               absl::StrCat("launching kernel ", name_));
}

absl::StatusOr<std::unique_ptr<CudaModule>> CudaModule::Load(
    std::shared_ptr<Context> context, std::string_view section) {
  if (section.empty())
    return absl::InvalidArgumentError(
        "expected PTX or machine code of a GPU, found nothing; compile the "
        "model again");
  PARTITA_RETURN_IF_ERROR(context->Enter());
  PARTITA_ASSIGN_OR_RETURN(const program::CodeBundle bundle,
                           program::ReadCodeBundle(section));
  CuModule module = nullptr;
  // A driver may be older than the assembler and refuse its machine code. It
  // compiles the PTX itself, which takes longer.
  for (const std::string_view code :
       MachineCodeFor(context->machine(), bundle)) {
    const std::string copy(code);
    if (context->driver().LoadModule(&module, copy.c_str(), 0, nullptr,
                                     nullptr) == kCuSuccess)
      return std::unique_ptr<CudaModule>(
          new CudaModule(std::move(context), module));
  }
  // The driver expects PTX to end with a zero byte.
  const std::string text(bundle.portable);
  std::string log(kLogBytes, '\0');
  CuJitOption names[] = {kCuJitErrorLog, kCuJitErrorLogBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(kLogBytes)};
  const absl::Status status = context->Check(
      context->driver().LoadModule(&module, text.c_str(), 2, names, values),
      "loading the model's kernels");
  if (!status.ok())
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(), CompilerMessage(std::move(log))));
  return std::unique_ptr<CudaModule>(
      new CudaModule(std::move(context), module));
}

CudaModule::~CudaModule() {
  if (context_->Enter().ok()) context_->driver().UnloadModule(module_);
}

absl::StatusOr<CuFunction> CudaModule::FindFunction(
    const std::string& symbol) const {
  PARTITA_RETURN_IF_ERROR(context_->Enter());
  CuFunction function = nullptr;
  const CuResult result =
      context_->driver().FindFunction(&function, module_, symbol.c_str());
  if (result == kCuNotFound)
    return absl::NotFoundError(absl::StrCat("the code has no kernel '", symbol,
                                            "'; compile the model again"));
  const std::string doing = absl::StrCat("looking for kernel ", symbol);
  PARTITA_RETURN_IF_ERROR(context_->Check(result, doing));
  // With lazy loading a kernel is loaded here, not at its first launch, which
  // may have to wait for all other work on the GPU. Older drivers load it when
  // it is looked for.
  if (const auto load = context_->driver().LoadFunction; load != nullptr)
    PARTITA_RETURN_IF_ERROR(context_->Check(load(function), doing));
  return function;
}

absl::StatusOr<const device::Kernel*> CudaModule::Find(
    const std::string& symbol) {
  const auto known = kernels_.find(symbol);
  if (known != kernels_.end()) return &known->second;
  PARTITA_ASSIGN_OR_RETURN(const CuFunction function, FindFunction(symbol));
  return &kernels_
              .emplace(std::piecewise_construct, std::forward_as_tuple(symbol),
                       std::forward_as_tuple(context_, symbol, function))
              .first->second;
}

}  // namespace partita::cuda
