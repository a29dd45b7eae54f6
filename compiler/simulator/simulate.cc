// Folds devices into classes, runs their clocks, and adds up the times.
#include "compiler/simulator/simulate.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/simulator/engine.h"
#include "compiler/simulator/steps.h"
#include "runtime/program/labels.h"
#include "runtime/program/mesh.h"
#include "runtime/program/types.h"

namespace partita::simulator {
namespace {

using program::Instruction;
using program::SizeOrZero;

// [function]: calls of each function on a class's devices, derived from the
// calls that the engine executed.
class CallCounts {
 public:
  CallCounts(const Steps& steps, const std::vector<int64_t>& seen)
      : steps_(steps), counts_(seen.size(), 0) {
    std::set<int> mains;
    for (const program::Entry* entry : *steps.program().entries())
      mains.insert(entry->main());
    for (size_t i = 0; i < seen.size(); ++i) {
      const int function = static_cast<int>(i);
      // The engine runs every main and has counted its calls itself.
      if (mains.count(function) > 0)
        counts_[i] += seen[i];
      else if (seen[i] > 0)
        Add(function, seen[i]);
    }
  }

  int64_t Of(int function) const {
    return counts_[static_cast<size_t>(function)];
  }

 private:
  // The engine does not enter functions that only compute, so count their calls
  // here.
  void Add(int function, int64_t times) {
    counts_[static_cast<size_t>(function)] += times;
    if (steps_.Of(function).communicates) return;
    const auto* body = steps_.FunctionAt(function).body();
    for (unsigned i = 0; i < SizeOrZero(body); ++i)
      if (const program::Call* call = body->Get(i)->operation_as_Call())
        Add(call->function(), times);
  }

  const Steps& steps_;
  std::vector<int64_t> counts_;
};

std::string TextOf(const flatbuffers::String* text) {
  return text == nullptr ? "" : text->str();
}

// Names of mesh axes. A part of an axis also has its size.
std::string NamesOf(const program::Mesh* mesh, const program::AxisList* axes) {
  std::string text;
  for (unsigned i = 0; i < SizeOrZero(axes); ++i) {
    const program::AxisPart& part = *axes->Get(i);
    const program::MeshAxis& axis =
        *mesh->axes()->Get(static_cast<unsigned>(part.axis()));
    absl::StrAppend(&text, i > 0 ? "," : "", axis.name()->str());
    if (part.size() != axis.size()) absl::StrAppend(&text, ":", part.size());
  }
  return text;
}

std::string Sizes(const flatbuffers::Vector<int64_t>* sizes) {
  std::string text;
  for (const int64_t size : program::ToVector(sizes))
    absl::StrAppend(&text, text.empty() ? "" : "x", size);
  return text;
}

// The beginning of the name that runtime/executor uses in profiles.
std::string LabelOf(const program::Program& program,
                    const Instruction& instruction) {
  if (const program::Launch* launch = instruction.operation_as_Launch())
    return program::KernelLabel(program, *launch).str();
  if (const program::Gemm* gemm = instruction.operation_as_Gemm())
    return absl::StrCat("gemm ", gemm->batch(), "x", gemm->m(), "x", gemm->n(),
                        "x", gemm->k(), " ",
                        base::NameOf(program::ToBase(gemm->dtype())));
  if (const auto* grouped = instruction.operation_as_GroupedGemm())
    return absl::StrCat("grouped gemm ",
                        grouped->weight_grad() ? "weight grad " : "",
                        grouped->rows(), "x", grouped->n(), "x", grouped->k(),
                        " of ", grouped->groups(), " ",
                        base::NameOf(program::ToBase(grouped->dtype())));
  const program::Conv* conv = instruction.operation_as_Conv();
  if (conv == nullptr) return "";
  const bool forward = conv->direction() == program::ConvDirection::forward;
  return absl::StrCat("conv ",
                      forward ? ""
                      : conv->direction() == program::ConvDirection::input_grad
                          ? "input grad "
                          : "weight grad ",
                      Sizes(conv->input_shape()),
                      conv->channels_last() ? " nhwc" : " nchw", " * ",
                      Sizes(conv->weight_shape()));
}

OperationTotal Describe(const Steps& steps, int function, unsigned index) {
  const Instruction& instruction = steps.InstructionAt(function, index);
  OperationTotal total;
  total.function = TextOf(steps.FunctionAt(function).name());
  total.name = TextOf(instruction.name());
  total.kind = KindOf(instruction);
  total.label = LabelOf(steps.program(), instruction);
  total.why = TextOf(instruction.why());
  const program::Collective* collective = instruction.operation_as_Collective();
  if (collective != nullptr) {
    total.group = program::GroupSize(collective->axes());
    total.axes = NamesOf(steps.program().mesh(), collective->axes());
  }
  if (collective != nullptr || instruction.operation_as_Send() != nullptr ||
      instruction.operation_as_Receive() != nullptr)
    for (unsigned i = 0; i < instruction.operands()->size(); ++i)
      total.bytes =
          std::max(total.bytes, instruction.operands()->Get(i)->bytes());
  return total;
}

std::vector<OperationTotal> AddUp(const Steps& steps, const Folding& folding,
                                  const Engine& engine, const Costs& costs) {
  double devices = 0;
  for (const DeviceClass& c : folding.classes())
    devices += static_cast<double>(c.devices);
  std::map<std::pair<int, unsigned>, OperationTotal> totals;
  for (size_t c = 0; c < folding.classes().size(); ++c) {
    const DeviceClass& device_class = folding.classes()[c];
    const double share = static_cast<double>(device_class.devices) / devices;
    const double slowness = costs.Slowness(device_class.rank);
    const CallCounts counts(steps, engine.calls()[c]);
    for (unsigned f = 0; f < steps.program().functions()->size(); ++f) {
      const int function = static_cast<int>(f);
      const int64_t calls = counts.Of(function);
      if (calls == 0) continue;
      const auto* body = steps.FunctionAt(function).body();
      for (unsigned i = 0; i < SizeOrZero(body); ++i) {
        auto [found, is_new] = totals.try_emplace({function, i});
        OperationTotal& total = found->second;
        if (is_new) total = Describe(steps, function, i);
        total.calls += share * static_cast<double>(calls);
        total.seconds += share * static_cast<double>(calls) * slowness *
                         steps.SecondsOf(function, i);
        const auto exposed =
            engine.exposed().find({static_cast<int>(c), function, i});
        if (exposed != engine.exposed().end())
          total.seconds += share * exposed->second;
      }
    }
  }
  // Merge operations that look the same to the user.
  struct Row {
    OperationTotal total;
    std::set<std::string> reasons;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string,
                      int64_t, std::string>,
           Row>
      described;
  for (auto& [place, total] : totals) {
    auto& [sum, reasons] = described[{total.function, total.name, total.kind,
                                      total.label, total.bytes, total.axes}];
    const double calls = sum.calls + total.calls,
                 seconds = sum.seconds + total.seconds;
    if (!total.why.empty()) reasons.insert(total.why);
    sum = std::move(total);
    sum.calls = calls;
    sum.seconds = seconds;
  }
  std::vector<OperationTotal> result;
  for (auto& [key, row] : described) {
    row.total.why = absl::StrJoin(row.reasons, "; ");
    result.push_back(std::move(row.total));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const OperationTotal& a, const OperationTotal& b) {
                     return a.seconds > b.seconds;
                   });
  return result;
}

// Share of all devices' time in a step.
double ShareOf(const Simulation& simulation, double DeviceTimes::* part) {
  double sum = 0, all = 0;
  for (size_t i = 0; i < simulation.classes.size(); ++i) {
    const double devices = static_cast<double>(simulation.classes[i].devices);
    sum += devices * (simulation.times[i].*part);
    all += devices * simulation.step;
  }
  return all > 0 ? sum / all : 0;
}

}  // namespace

double Simulation::Bubble() const { return ShareOf(*this, &DeviceTimes::idle); }

double Simulation::Exposed() const {
  return ShareOf(*this, &DeviceTimes::collectives) +
         ShareOf(*this, &DeviceTimes::transfers);
}

Simulation Simulate(const program::Program& program, const Costs& costs,
                    const SimulateOptions& options) {
  const Folding folding(program, costs);
  const Steps steps(program, folding.axes(), costs);
  Engine engine(steps, folding, costs, options);
  engine.Run();
  Simulation result;
  result.step = engine.StepSeconds();
  result.classes = folding.classes();
  result.times = engine.times();
  for (DeviceTimes& times : result.times)
    times.idle = std::max(
        0.0, result.step - times.compute - times.collectives - times.transfers);
  result.main = engine.TakeMain();
  result.spans = engine.TakeSpans();
  result.names = steps.names();
  result.operations = AddUp(steps, folding, engine, costs);
  return result;
}

}  // namespace partita::simulator
