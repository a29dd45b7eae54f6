// Lifetimes from first to last use, seconds from the cost model.
#include "compiler/planner/program_sketch.h"

#include <algorithm>
#include <utility>

namespace partita::planner {

using Value = ProgramSketch::Value;

Value ProgramSketch::Argument(double bytes) {
  Content content;
  content.bytes = bytes;
  content.held = true;
  values_.push_back(content);
  return static_cast<Value>(values_.size()) - 1;
}

std::vector<Value> ProgramSketch::Append(Operation operation,
                                         const std::vector<Value>& reads,
                                         const std::vector<double>& writes) {
  const int now = static_cast<int>(operations_.size());
  operations_.push_back(operation);
  for (const Value value : reads) values_[value].last = now;
  std::vector<Value> results;
  for (const double bytes : writes) {
    Content content;
    content.bytes = bytes;
    content.first = content.last = now;
    results.push_back(static_cast<Value>(values_.size()));
    values_.push_back(content);
  }
  return results;
}

std::vector<Value> ProgramSketch::Kernel(std::vector<Value> reads,
                                         std::vector<double> writes,
                                         double operations) {
  Operation operation;
  operation.operations = operations;
  for (const Value value : reads) operation.bytes += values_[value].bytes;
  for (const double bytes : writes) operation.bytes += bytes;
  return Append(operation, reads, writes);
}

Value ProgramSketch::Piece(Value from, double bytes) {
  Operation operation;
  operation.bytes = 2 * bytes;
  return Append(operation, {from}, {bytes})[0];
}

Value ProgramSketch::Product(int64_t m, int64_t n, int64_t k,
                             std::vector<Value> reads, ProductForm form) {
  Operation operation;
  operation.kind = Operation::Kind::kProduct;
  operation.m = m;
  operation.n = n;
  operation.k = k;
  operation.form = form;
  return Append(operation, reads, {element_ * double(m) * double(n)})[0];
}

Value ProgramSketch::Collective(core::CollectiveKind kind, Value input,
                                double sent, double writes) {
  Operation operation;
  operation.kind = Operation::Kind::kCollective;
  operation.collective = kind;
  operation.bytes = sent;
  return Append(operation, {input}, {writes})[0];
}

std::vector<Value> ProgramSketch::Call(double frame, std::vector<Value> reads,
                                       std::vector<double> writes) {
  Operation operation;
  operation.kind = Operation::Kind::kCall;
  operation.bytes = frame;
  return Append(operation, reads, writes);
}

Value ProgramSketch::Return(Value value) {
  values_[value].returned = true;
  return value;
}

double ProgramSketch::FrameBytes() const {
  std::vector<double> change(operations_.size() + 1);
  for (const Content& value : values_) {
    if (value.held || value.returned) continue;
    change[value.first] += value.bytes;
    change[value.last + 1] -= value.bytes;
  }
  double now = 0, most = 0;
  for (size_t i = 0; i < operations_.size(); ++i) {
    now += change[i];
    const bool calls = operations_[i].kind == Operation::Kind::kCall;
    most = std::max(most, now + (calls ? operations_[i].bytes : 0));
  }
  return most;
}

double ProgramSketch::ReturnedBytes() const {
  double bytes = 0;
  for (const Content& value : values_)
    if (value.returned) bytes += value.bytes;
  return bytes;
}

Pass ProgramSketch::Time(const Cluster& cluster,
                         const GroupShape& tensor) const {
  const Device& device = cluster.device;
  Pass pass;
  for (const Operation& operation : operations_) {
    switch (operation.kind) {
      case Operation::Kind::kKernel: {
        const double memory = MemoryBoundTime(device, operation.bytes);
        if (operation.operations > 0)
          pass.attention += std::max(
              {memory, device.launch,
               AttentionTime(device, precision_, operation.operations)});
        else
          pass.elementwise += std::max(memory, device.launch);
        break;
      }
      case Operation::Kind::kProduct:
        pass.products +=
            std::max(device.launch,
                     MatmulTime(device, precision_, 1, operation.m, operation.n,
                                operation.k, operation.form));
        break;
      case Operation::Kind::kCollective:
        pass.tensor += CollectiveTime(cluster, operation.collective,
                                      operation.bytes, tensor);
        break;
      case Operation::Kind::kCall:
        break;
    }
  }
  return pass;
}

double ProgramSketch::WeightTime(const Cluster& cluster) const {
  double seconds = 0;
  for (const Operation& operation : operations_)
    if (operation.form == ProductForm::kLhsTransposed)
      seconds += std::max(cluster.device.launch,
                          MatmulTime(cluster.device, precision_, 1, operation.m,
                                     operation.n, operation.k, operation.form));
  return seconds;
}

}  // namespace partita::planner
