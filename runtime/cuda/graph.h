// Captured work of a stream, as a graph of the driver.
#ifndef PARTITA_RUNTIME_CUDA_GRAPH_H_
#define PARTITA_RUNTIME_CUDA_GRAPH_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/context.h"
#include "runtime/device/device.h"

namespace partita::cuda {

class CudaGraph : public device::Graph {
 public:
  // Captures `work`. The context must be current on the calling thread. The
  // graph keeps `scratch`, which the work may use, alive.
  static absl::StatusOr<std::unique_ptr<CudaGraph>> Capture(
      std::shared_ptr<Context> context, CuStream stream,
      std::shared_ptr<const void> scratch,
      const std::function<absl::Status()>& work);
  CudaGraph(const CudaGraph&) = delete;
  ~CudaGraph() override;

  absl::Status Launch(CuStream stream) const {
    return context_->Check(context_->driver().LaunchGraph(graph_, stream),
                           "starting a step's graph");
  }

 private:
  CudaGraph(std::shared_ptr<Context> context,
            std::shared_ptr<const void> scratch, CuGraphExec graph)
      : context_(std::move(context)),
        scratch_(std::move(scratch)),
        graph_(graph) {}

  const std::shared_ptr<Context> context_;
  const std::shared_ptr<const void> scratch_;
  const CuGraphExec graph_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_GRAPH_H_
