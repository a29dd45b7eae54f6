// Captures graphs. The capture ends even if the work fails.
#include "runtime/cuda/graph.h"

#include "runtime/base/status_macros.h"

namespace partita::cuda {

absl::StatusOr<std::unique_ptr<CudaGraph>> CudaGraph::Capture(
    std::shared_ptr<Context> context, CuStream stream,
    std::shared_ptr<const void> scratch,
    const std::function<absl::Status()>& work) {
  const Driver& cuda = context->driver();
  PARTITA_RETURN_IF_ERROR(
      context->Check(cuda.BeginCapture(stream, kCuCaptureThreadLocal),
                     "beginning to capture a step"));
  absl::Status status = work();
  CuGraph captured = nullptr;
  status.Update(
      context->Check(cuda.EndCapture(stream, &captured), "capturing a step"));
  CuGraphExec graph = nullptr;
  if (status.ok())
    status = context->Check(cuda.InstantiateGraph(&graph, captured, 0),
                            "making a graph of a step");
  if (captured != nullptr) cuda.DestroyGraph(captured);
  PARTITA_RETURN_IF_ERROR(status);
  return std::unique_ptr<CudaGraph>(
      new CudaGraph(std::move(context), std::move(scratch), graph));
}

CudaGraph::~CudaGraph() {
  if (context_->Enter().ok()) context_->driver().DestroyGraphExec(graph_);
}

}  // namespace partita::cuda
