// cuDNN's graph API for single convolutions and for graphs of products
// (dnn_graph.h), as plain loops on the recording driver's streams. Calls that
// break its rules on finalized descriptors, layouts, alignment and workspace
// fail with its error.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "runtime/cuda/dnn_api.h"
#include "runtime/cuda/recording/dnn_graph.h"
#include "runtime/cuda/recording/dnn_objects.h"
#include "runtime/cuda/recording/queue.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/cuda/recording/touched_kernels.h"

namespace partita::cuda::recording {
namespace {

constexpr DnnStatus kBadParam = kDnnBadParameter;
constexpr DnnStatus kNotSupported = kDnnNotSupported;
constexpr int64_t kWorkspace = 1024;

// Engines, the library's preferred one first.
struct Engine {
  float milliseconds;
  std::vector<DnnNote> notes;
  bool prepares = true;
  int64_t workspace = kWorkspace;
};
const std::vector<Engine>& Engines() {
  static const auto* const engines =
      new std::vector<Engine>{{1, {kDnnNondeterministic}},
                              {2, {}, false},
                              {6, {}, true, 0},
                              {3, {kDnnTensorCores}},
                              {4, {}},
                              {1, {kDnnRoundsInputs}},
                              // More workspace than any convolution may have.
                              {0.5f, {}, true, int64_t{1} << 40}};
  return *engines;
}

Object& Of(DnnObject object) { return *static_cast<Object*>(object); }

size_t SizeOf(DnnType type) {
  switch (type) {
    case kDnnTypeHandle:
    case kDnnTypeInt64:
    case kDnnTypePointer:
    case kDnnTypeObject:
      return 8;
    case kDnnTypeBoolean:
      return 1;
    default:
      return 4;
  }
}

// Up to three spatial coordinates.
using Place3 = std::array<Int, 3>;

struct Tensor {
  std::vector<int64_t> dims, strides;
  KernelType type;
  int64_t id, alignment;
  char* data = nullptr;

  explicit Tensor(const Object& object)
      : dims(object.All<int64_t>(kDnnTensorDims)),
        strides(object.All<int64_t>(kDnnTensorStrides)),
        type(object.One<int>(kDnnTensorType) == kDnnF32   ? KernelType::kF32
             : object.One<int>(kDnnTensorType) == kDnnF16 ? KernelType::kF16
                                                          : KernelType::kBF16),
        id(object.One<int64_t>(kDnnTensorId)),
        alignment(object.One<int64_t>(kDnnTensorAlignment)) {}
  // 1: channels first. 2: channels last. 0: both are the same.
  int Layout() const {
    Int places = 1;
    for (size_t d = 2; d < dims.size(); ++d) places *= dims[d];
    return dims[1] == 1 || places == 1 ? 0 : strides[1] == 1 ? 2 : 1;
  }
  Int IndexOf(Int n, Int c, const Place3& at) const {
    Int index = n * strides[0] + c * strides[1];
    for (size_t d = 2; d < dims.size(); ++d) index += at[d - 2] * strides[d];
    return index;
  }
};

// A convolution or gradient, summed in f32 into the result tensor.
struct Convolution {
  DnnKind kind;
  Tensor w, x, y;
  std::vector<int64_t> steps, dilations, before, after;

  bool Fits() const {
    const size_t spatial = steps.size();
    if (spatial < 2 || spatial > 3 || dilations.size() != spatial ||
        before.size() != spatial)
      return false;
    for (const Tensor* tensor : {&w, &x, &y})
      if (tensor->dims.size() != spatial + 2) return false;
    for (size_t d = 0; d < spatial; ++d) {
      const int64_t reach = dilations[d] * (w.dims[2 + d] - 1) + 1;
      if (y.dims[2 + d] !=
          (x.dims[2 + d] + before[d] + after[d] - reach) / steps[d] + 1)
        return false;
    }
    return x.dims[1] % w.dims[1] == 0 && y.dims[0] == x.dims[0] &&
           y.dims[1] == w.dims[0] &&
           (w.Layout() | x.Layout() | y.Layout()) != 3;
  }
  // Calls visit(index in w, index in x, index in y) for every product.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    const Int channels = w.dims[1], groups = x.dims[1] / channels;
    const Int features = w.dims[0] / groups;
    Int kernel = 1, places = 1;
    for (size_t d = 2; d < w.dims.size(); ++d) kernel *= w.dims[d];
    for (size_t d = 2; d < y.dims.size(); ++d) places *= y.dims[d];
    for (Int n = 0; n < y.dims[0]; ++n)
      for (Int o = 0; o < y.dims[1]; ++o)
        for (Int place = 0; place < places; ++place) {
          const Place3 at = Split(place, y);
          for (Int k = 0; k < kernel; ++k) {
            const Place3 tap = Split(k, w);
            Place3 from = {};
            bool inside = true;
            for (size_t d = 0; d < steps.size(); ++d) {
              from[d] = at[d] * steps[d] - before[d] + tap[d] * dilations[d];
              inside = inside && from[d] >= 0 && from[d] < x.dims[2 + d];
            }
            for (Int c = 0; inside && c < channels; ++c)
              visit(w.IndexOf(o, c, tap),
                    x.IndexOf(n, o / features * channels + c, from),
                    y.IndexOf(n, o, at));
          }
        }
  }
  void Run() const {
    const Tensor& result = kind == kDnnForward         ? y
                           : kind == kDnnInputGradient ? x
                                                       : w;
    std::vector<float> sums(static_cast<size_t>(SpanOf(result)));
    const auto read = [&](const Tensor& tensor) {
      return &tensor == &result ? std::vector<float>() : Read(tensor);
    };
    const std::vector<float> of_w = read(w), of_x = read(x), of_y = read(y);
    ForEach([&](Int in_w, Int in_x, Int in_y) {
      const auto at_w = static_cast<size_t>(in_w),
                 at_x = static_cast<size_t>(in_x),
                 at_y = static_cast<size_t>(in_y);
      if (kind == kDnnForward)
        sums[at_y] += of_w[at_w] * of_x[at_x];
      else if (kind == kDnnInputGradient)
        sums[at_x] += of_w[at_w] * of_y[at_y];
      else
        sums[at_w] += of_x[at_x] * of_y[at_y];
    });
    for (size_t i = 0; i < sums.size(); ++i)
      Store(result.type, result.data, static_cast<Int>(i), sums[i]);
  }

 private:
  // Elements from the first to the last one, with gaps.
  static Int SpanOf(const Tensor& tensor) {
    Int span = 1;
    for (size_t d = 0; d < tensor.dims.size(); ++d)
      span += (tensor.dims[d] - 1) * tensor.strides[d];
    return span;
  }
  // Reads each element once: every access is compared with others.
  static std::vector<float> Read(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(SpanOf(tensor)));
    Int places = 1;
    for (size_t d = 2; d < tensor.dims.size(); ++d) places *= tensor.dims[d];
    for (Int n = 0; n < tensor.dims[0]; ++n)
      for (Int c = 0; c < tensor.dims[1]; ++c)
        for (Int place = 0; place < places; ++place) {
          const Int at = tensor.IndexOf(n, c, Split(place, tensor));
          values[static_cast<size_t>(at)] = Load(tensor.type, tensor.data, at);
        }
    return values;
  }
  static Place3 Split(Int i, const Tensor& tensor) {
    Place3 at = {};
    for (size_t d = tensor.dims.size(); d-- > 2;) {
      at[d - 2] = i % tensor.dims[d];
      i /= tensor.dims[d];
    }
    return at;
  }
};

const Object& GraphOf(const Object& plan) {
  return *plan.Other(kDnnPlanConfig)->Other(kDnnHeuristicsGraph);
}

bool Convolves(const Object& graph) {
  const DnnKind kind = graph.Other(kDnnGraphOperations)->kind;
  return kind == kDnnForward || kind == kDnnInputGradient ||
         kind == kDnnWeightGradient;
}

Convolution ConvolutionOf(const Object& plan) {
  const Object& operation = *GraphOf(plan).Other(kDnnGraphOperations);
  const int first = operation.kind == kDnnForward ? kDnnForwardAlpha
                    : operation.kind == kDnnInputGradient
                        ? kDnnInputGradientAlpha
                        : kDnnWeightGradientAlpha;
  const Object& convolution = *operation.Other(first + 2);
  return {operation.kind,
          Tensor(*operation.Other(first + 3)),
          Tensor(*operation.Other(first + 4)),
          Tensor(*operation.Other(first + 5)),
          convolution.All<int64_t>(kDnnStrides),
          convolution.All<int64_t>(kDnnDilations),
          convolution.All<int64_t>(kDnnPaddingBefore),
          convolution.All<int64_t>(kDnnPaddingAfter)};
}

struct Handle {
  Stream* stream = nullptr;
};

DnnStatus GetObjects(Object& object, DnnAttribute attribute, int64_t most,
                     int64_t* count, DnnObject* objects) {
  if (attribute == kDnnConfigEngine) {
    *count = 1;
    Of(objects[0]).engine = object.engine;
    return kDnnSuccess;
  }
  if (attribute != kDnnHeuristicsResults) return kBadParam;
  *count = std::min<int64_t>(most, static_cast<int64_t>(Engines().size()));
  for (int64_t i = 0; i < *count; ++i) {
    Object& config = Of(objects[i]);
    config.finished = true;
    config.engine = static_cast<size_t>(i);
    config.values[kDnnHeuristicsGraph] = object.values[kDnnHeuristicsGraph];
  }
  return kDnnSuccess;
}

}  // namespace
}  // namespace partita::cuda::recording

using namespace partita::cuda;
using namespace partita::cuda::recording;

#pragma GCC visibility push(default)
extern "C" {

size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(DnnStatus) { return "CUDNN_STATUS_RECORDED"; }
DnnStatus cudnnCreate(DnnHandle* handle) {
  const Lock lock(Machine::Get().mutex);
  const auto status = static_cast<DnnStatus>(Machine::Get().Enter(__func__));
  if (status == kDnnSuccess) *handle = new Handle();
  return status;
}
DnnStatus cudnnDestroy(DnnHandle handle) {
  delete static_cast<Handle*>(handle);
  return kDnnSuccess;
}
DnnStatus cudnnSetStream(DnnHandle handle, DnnStream stream) {
  const Lock lock(Machine::Get().mutex);
  static_cast<Handle*>(handle)->stream = static_cast<Stream*>(stream);
  return kDnnSuccess;
}
DnnStatus cudnnBackendCreateDescriptor(DnnKind kind, DnnObject* object) {
  *object = new Object{kind};
  return kDnnSuccess;
}
DnnStatus cudnnBackendDestroyDescriptor(DnnObject object) {
  delete &Of(object);
  return kDnnSuccess;
}
DnnStatus cudnnBackendSetAttribute(DnnObject object, DnnAttribute attribute,
                                   DnnType type, int64_t count,
                                   const void* values) {
  if (Of(object).finished || count < 1) return kBadParam;
  if (type == kDnnTypeObject)
    for (int64_t i = 0; i < count; ++i)
      if (!Of(static_cast<const DnnObject*>(values)[i]).finished)
        return kBadParam;
  Of(object).values[attribute].assign(
      static_cast<const char*>(values),
      SizeOf(type) * static_cast<size_t>(count));
  return kDnnSuccess;
}
DnnStatus cudnnBackendFinalize(DnnObject object) {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  Object& made = Of(object);
  if (const CuResult failed =
          machine.Enter(made.kind == kDnnHeuristics ? kFinalizeHeuristics
                        : made.kind == kDnnPlan     ? kFinalizePlan
                                                    : __func__);
      failed != kCuSuccess)
    return static_cast<DnnStatus>(failed);
  if (made.kind == kDnnPlan) {
    const size_t engine = made.Other(kDnnPlanConfig)->engine;
    const Object& graph = GraphOf(made);
    if (Convolves(graph) ? !ConvolutionOf(made).Fits()
                         : !OperationGraph(graph).Fits())
      return kNotSupported;
    if (!Engines()[engine].prepares) return kNotSupported;
    made.engine = engine;
  }
  made.finished = true;
  return kDnnSuccess;
}
DnnStatus cudnnBackendGetAttribute(DnnObject object, DnnAttribute attribute,
                                   DnnType type, int64_t most, int64_t* count,
                                   void* values) {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  Object& asked = Of(object);
  if (const CuResult failed = machine.Enter(
          attribute == kDnnHeuristicsResults    ? kGetHeuristicsResults
          : attribute == kDnnPlanWorkspaceBytes ? kGetPlanWorkspace
                                                : __func__);
      failed != kCuSuccess)
    return static_cast<DnnStatus>(failed);
  if (type == kDnnTypeObject)
    return GetObjects(asked, attribute, most, count,
                      static_cast<DnnObject*>(values));
  *count = 1;
  if (attribute == kDnnEngineNotes) {
    const std::vector<DnnNote>& notes = Engines()[asked.engine].notes;
    *count = static_cast<int64_t>(notes.size());
    std::copy(notes.begin(), notes.end(), static_cast<DnnNote*>(values));
  } else if (attribute == kDnnEngineIndex) {
    *static_cast<int64_t*>(values) = static_cast<int64_t>(asked.engine);
  } else if (attribute == kDnnPlanWorkspaceBytes) {
    *static_cast<int64_t*>(values) = Engines()[asked.engine].workspace;
  } else {
    return kBadParam;
  }
  return kDnnSuccess;
}
DnnStatus cudnnBackendExecute(DnnHandle handle, DnnObject plan,
                              DnnObject pack) {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  const size_t engine = Of(plan).engine;
  if (machine.Enter("cudnnBackendExecute",
                    "engine " + std::to_string(engine)) != kCuSuccess)
    return kNotSupported;
  const auto ids = Of(pack).All<int64_t>(kDnnPackIds);
  const auto pointers = Of(pack).All<char*>(kDnnPackPointers);
  void* const workspace = Of(pack).One<void*>(kDnnPackWorkspace);
  const auto bytes = static_cast<size_t>(Engines()[engine].workspace);
  if (!Of(pack).finished || ids.size() != pointers.size() ||
      (workspace == nullptr && bytes > 0))
    return kBadParam;
  const auto put = [&](const std::function<void()>& compute) {
    Step step;
    step.name = "cudnnBackendExecute";
    step.work = [compute, workspace, bytes, engine] {
      if (bytes > 0) std::memset(workspace, 0x7f, bytes);
      Machine::Get().Touch(workspace, bytes, /*writes=*/true);
      compute();
      Machine::Get().AddTime(Engines()[engine].milliseconds);
    };
    machine.Put(*static_cast<Handle*>(handle)->stream, std::move(step));
    return kDnnSuccess;
  };
  if (const Object& graph = GraphOf(Of(plan)); !Convolves(graph)) {
    OperationGraph operations(graph);
    if (!operations.Bind(ids, pointers)) return kBadParam;
    return put([operations] { operations.Run(); });
  }
  Convolution convolution = ConvolutionOf(Of(plan));
  for (Tensor* tensor : {&convolution.w, &convolution.x, &convolution.y}) {
    const auto found = std::find(ids.begin(), ids.end(), tensor->id);
    if (found == ids.end()) return kBadParam;
    tensor->data = pointers[static_cast<size_t>(found - ids.begin())];
    if (reinterpret_cast<intptr_t>(tensor->data) % tensor->alignment != 0)
      return kBadParam;
  }
  return put([convolution] { convolution.Run(); });
}

}  // extern "C"
#pragma GCC visibility pop
