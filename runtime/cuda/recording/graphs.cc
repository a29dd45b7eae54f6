// Events of the recording driver, and capture of the streams that they join.
#include <algorithm>

#include "runtime/cuda/recording/queue.h"

namespace partita::cuda::recording {
namespace {

Stream& Of(CuStream stream) { return *static_cast<Stream*>(stream); }
Event& OfEvent(CuEvent event) { return *static_cast<Event*>(event); }

// True if every branch ends with a mark that another branch waits for.
bool IsJoined(const Graph& graph) {
  const auto waited_for = [&](const Mark* mark) {
    return std::any_of(
        graph.branches.begin(), graph.branches.end(), [&](const auto& branch) {
          return std::any_of(
              branch.begin(), branch.end(),
              [&](const Step& step) { return step.waits_for.get() == mark; });
        });
  };
  return std::all_of(graph.branches.begin() + 1, graph.branches.end(),
                     [&](const auto& branch) {
                       return branch.back().reaches != nullptr &&
                              waited_for(branch.back().reaches.get());
                     });
}

}  // namespace
}  // namespace partita::cuda::recording

using namespace partita::cuda;
using namespace partita::cuda::recording;

#pragma GCC visibility push(default)
extern "C" {

CuResult cuEventRecord(CuEvent event, CuStream stream) {
  PARTITA_ENTER();
  auto mark = std::make_shared<Mark>();
  mark->stream = &Of(stream);
  mark->graph = Of(stream).captured;
  mark->captured = Of(stream).captured != nullptr;
  OfEvent(event).mark = mark;
  Step step;
  step.reaches = std::move(mark);
  machine.Put(Of(stream), std::move(step));
  return kCuSuccess;
}
CuResult cuEventRecordWithFlags(CuEvent event, CuStream stream,
                                unsigned flags) {
  PARTITA_ENTER();
  if (flags != kCuEventRecordExternal || Of(stream).captured == nullptr)
    return kCuInvalidValue;
  Step step;
  step.reaches = std::make_shared<Mark>();
  step.reaches->stream = &Of(stream);
  step.records = &OfEvent(event);
  machine.Put(Of(stream), std::move(step));
  return kCuSuccess;
}
// A stream that waits for a mark of a capture joins the capture.
CuResult cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned) {
  PARTITA_ENTER();
  const std::shared_ptr<Mark> mark = OfEvent(event).mark;
  if (mark == nullptr) return kCuSuccess;
  Stream& waiting = Of(stream);
  if (mark->captured) {
    const std::shared_ptr<recording::Graph> graph = mark->graph.lock();
    // The mark's capture has ended, or its stream captures another graph.
    if (graph == nullptr || mark->stream->captured != graph)
      return kCuInvalidValue;
    if (waiting.captured == nullptr) {
      waiting.captured = graph;
      waiting.branch = graph->branches.size();
      graph->branches.emplace_back();
    }
    if (waiting.captured != graph) return kCuCaptureIsolation;
  } else if (waiting.captured != nullptr) {
    return kCuCaptureIsolation;
  }
  Step step;
  step.waits_for = mark;
  machine.Put(waiting, std::move(step));
  return kCuSuccess;
}
CuResult cuStreamIsCapturing(CuStream stream, int* capturing) {
  PARTITA_ENTER();
  *capturing = Of(stream).captured != nullptr ? 1 : 0;
  return kCuSuccess;
}
CuResult cuStreamBeginCapture_v2(CuStream stream, int) {
  PARTITA_ENTER();
  Of(stream).captured = std::make_shared<recording::Graph>();
  Of(stream).captured->branches.emplace_back();
  Of(stream).branch = 0;
  return kCuSuccess;
}
CuResult cuStreamEndCapture(CuStream stream, CuGraph* graph) {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  const std::shared_ptr<recording::Graph> captured = Of(stream).captured;
  machine.EndCapture(captured);
  // A failed call leaves no graph.
  *graph = nullptr;
  if (const CuResult result = machine.Enter(__func__); result != kCuSuccess)
    return result;
  if (!IsJoined(*captured)) return kCuCaptureUnjoined;
  *graph = new recording::Graph(*captured);
  return kCuSuccess;
}
CuResult cuGraphInstantiateWithFlags(CuGraphExec* graph_exec, CuGraph graph,
                                     unsigned long long) {
  PARTITA_ENTER();
  *graph_exec = new recording::Graph(*static_cast<recording::Graph*>(graph));
  return kCuSuccess;
}
CuResult cuGraphLaunch(CuGraphExec graph_exec, CuStream stream) {
  PARTITA_ENTER();
  machine.Replay(*static_cast<recording::Graph*>(graph_exec), Of(stream));
  return kCuSuccess;
}
CuResult cuGraphExecDestroy(CuGraphExec graph_exec) {
  PARTITA_ENTER();
  delete static_cast<recording::Graph*>(graph_exec);
  return kCuSuccess;
}
CuResult cuGraphDestroy(CuGraph graph) {
  PARTITA_ENTER();
  delete static_cast<recording::Graph*>(graph);
  return kCuSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
