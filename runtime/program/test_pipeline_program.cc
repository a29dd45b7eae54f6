// The functions of two stages; sums and updates are products, as in
// TrainingProgram.
#include "runtime/program/test_pipeline_program.h"

#include <memory>
#include <string>
#include <utility>

#include "runtime/base/random_fill.h"
#include "runtime/program/test_program.h"

namespace partita::program {
namespace {

constexpr int64_t kWidth = PipelineProgram::kWidth,
                  kHidden = PipelineProgram::kHidden,
                  kOut = PipelineProgram::kOut;
constexpr int64_t kUBytes = kWidth * kHidden * 4, kWBytes = kHidden * kOut * 4,
                  kFBytes = kWidth * kWidth * 4;

template <typename T>
std::unique_ptr<InstructionT> MakeTransfer(int64_t peer, int64_t rows,
                                           Buffer buffer, int outputs,
                                           const std::string& name) {
  T transfer;
  transfer.axes = {WholeAxis(1, 2)};
  transfer.peer = peer;
  transfer.shape = {rows, kHidden};
  OperationUnion operation;
  operation.Set(std::move(transfer));
  return MakeInstruction(std::move(operation), {buffer}, outputs, name);
}

// Half 0 or 1 of a buffer in a frame.
Buffer HalfOf(const Buffer& buffer, int64_t half) {
  return Frame(buffer.value() + half * buffer.bytes() / 2, buffer.bytes() / 2);
}

std::vector<float> Uniform(int64_t count, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  // Cannot fail: the distribution is known.
  (void)base::FillElements({"uniform", 1.0, seed}, base::DType::kF32, 0, count,
                           values.data());
  return values;
}

// a [m,k] times b [k,n].
std::vector<double> Times(const std::vector<double>& a,
                          const std::vector<double>& b, size_t k, size_t n) {
  std::vector<double> c(a.size() / k * n, 0);
  for (size_t i = 0; i < c.size(); ++i)
    for (size_t j = 0; j < k; ++j) c[i] += a[i / n * k + j] * b[j * n + i % n];
  return c;
}

std::vector<double> Transposed(const std::vector<double>& a, size_t columns) {
  const size_t rows = a.size() / columns;
  std::vector<double> b(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    b[i % columns * rows + i / columns] = a[i];
  return b;
}

void Move(std::vector<float>& values, float lr,
          const std::vector<double>& gradient) {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(values[i] + lr * gradient[i]);
}

}  // namespace

PipelineProgram::PipelineProgram(int64_t batch, int64_t data_axis) {
  const AxisPart over_data = WholeAxis(0, data_axis);
  const int64_t rows = batch / data_axis;
  program.mesh = MakeMesh({{"data", data_axis}, {"pipe", 2}});
  program.pipeline = {WholeAxis(1, 2)};
  program.schedule = "# a schedule\n";
  program.target = "cpu";
  program.inputs.push_back(MakePort("x", DType::f32, {rows, kWidth}));
  program.inputs.push_back(MakePort("t", DType::f32, {rows, kOut}));
  program.inputs.push_back(MakePort("lr", DType::f32, {}));
  program.inputs[2]->role = PortRole::learning_rate;
  program.inputs.push_back(MakePort("step", DType::i64, {}));
  program.inputs[3]->role = PortRole::step;
  program.outputs.push_back(MakePort("loss", DType::f32, {}));
  program.outputs.push_back(MakePort("at", DType::i64, {}));
  program.outputs.push_back(MakePort("y", DType::f32, {rows, kOut}));
  program.inputs[0]->shard = MakeShard({batch, kWidth}, {{over_data}, {}});
  program.inputs[1]->shard = MakeShard({batch, kOut}, {{over_data}, {}});
  program.outputs[2]->shard = MakeShard({batch, kOut}, {{over_data}, {}});
  program.parameters.push_back(
      MakeSeeded("w", DType::f32, {kHidden, kOut}, "uniform", 1));
  program.parameters.push_back(
      MakeSeeded("u", DType::f32, {kWidth, kHidden}, "uniform", 2));
  std::vector<float> f;
  for (int64_t i = 0; i < kWidth * kWidth; ++i) f.push_back(Frozen(i));
  program.parameters.push_back(MakeEmbedded(
      "f", DType::f32, {kWidth, kWidth},
      static_cast<uint64_t>(data.Add(BytesOfValues(f))), DType::f32));
  AddFirst(rows, data_axis);
  AddSecond(rows, data_axis);
}

// init(f) -> g; first(x, lr, step, u, g) -> at, u'
void PipelineProgram::AddFirst(int64_t rows, int64_t data_axis) {
  const Buffer f = Argument(0, kFBytes);
  auto init = MakeFunction("init", 2, 1, 0);
  init->body.push_back(
      MakeProduct({kWidth, kWidth, kWidth}, {f, f, Argument(1, kFBytes)}, "g"));
  program.functions.push_back(std::move(init));
  const int64_t half_bytes = rows / 2 * kHidden * 4;
  auto pass = MakeFunction("pass", 1, 0, 0);
  pass->body.push_back(
      MakeTransfer<SendT>(1, rows / 2, Argument(0, half_bytes), 0, "h"));
  program.functions.push_back(std::move(pass));

  const Buffer x = Argument(0, rows * kWidth * 4), lr = Argument(1, 4),
               u = Argument(3, kUBytes);
  FrameSpace frame;
  const Buffer z = frame.Add(rows * kWidth * 4), h = frame.Add(2 * half_bytes),
               dh = frame.Add(2 * half_bytes), own = frame.Add(kUBytes),
               total = frame.Add(kUBytes), moved = frame.Add(kUBytes);
  auto first = MakeFunction("first", 7, 2, frame.bytes());
  auto& body = first->body;
  body.push_back(
      MakeProduct({rows, kWidth, kWidth}, {x, Argument(4, kFBytes), z}, "z"));
  body.push_back(MakeProduct({rows, kHidden, kWidth}, {z, u, h}, "h"));
  for (const int64_t half : {0, 1})
    body.push_back(MakeCall(1, 0, {HalfOf(h, half)}, 0));
  for (const int64_t half : {0, 1})
    body.push_back(
        MakeTransfer<ReceiveT>(1, rows / 2, HalfOf(dh, half), 1, "dh"));
  body.push_back(
      MakeProduct({kWidth, kHidden, rows, true}, {z, dh, own}, "u.gradient"));
  body.push_back(MakeSum({WholeAxis(0, data_axis)}, {kWidth, kHidden}, own,
                         total, "u.sum"));
  body.push_back(MakeProduct({1, kWidth * kHidden, 1, false, true},
                             {lr, total, u, moved}, "u.update"));
  body.push_back(MakeCopy(Argument(2, 8), Argument(5, 8)));
  body.push_back(MakeCopy(moved, Argument(6, kUBytes)));
  program.functions.push_back(std::move(first));
  EntryT& entry = AddEntry(program, 2, {1, 3});
  entry.inputs = {0, 2, 3};
  entry.outputs = {1};
  entry.derived.push_back(MakeType(DType::f32, {kWidth, kWidth}));
  entry.init = 0;
  entry.init_parameters = {2};
  entry.main_updates = {1};
}

// second(lr, t, w) -> loss, y, w'
void PipelineProgram::AddSecond(int64_t rows, int64_t data_axis) {
  const Buffer minus_one = Constant(data.Add(BytesOfValues<float>({-1})), 4);
  const AxisPart over_data = WholeAxis(0, data_axis);
  const Buffer lr = Argument(0, 4), t = Argument(1, rows * kOut * 4),
               w = Argument(2, kWBytes), y = Argument(4, rows * kOut * 4);
  FrameSpace frame;
  const Buffer h = frame.Add(rows * kHidden * 4), d = frame.Add(t.bytes()),
               dh = frame.Add(h.bytes()), sum = frame.Add(4),
               own = frame.Add(kWBytes), total = frame.Add(kWBytes),
               moved = frame.Add(kWBytes);
  auto second = MakeFunction("second", 6, 3, frame.bytes());
  auto& body = second->body;
  for (const int64_t half : {0, 1})
    body.push_back(
        MakeTransfer<ReceiveT>(0, rows / 2, HalfOf(h, half), 1, "h"));
  body.push_back(MakeProduct({rows, kOut, kHidden}, {h, w, y}, "y"));
  body.push_back(MakeProduct({rows * kOut, 1, 1, false, true},
                             {y, minus_one, t, d}, "difference"));
  body.push_back(
      MakeProduct({rows, kHidden, kOut, false, false, true}, {d, w, dh}, "dh"));
  for (const int64_t half : {0, 1})
    body.push_back(MakeTransfer<SendT>(0, rows / 2, HalfOf(dh, half), 0, "dh"));
  body.push_back(MakeProduct({1, 1, rows * kOut}, {d, d, sum}, "loss"));
  body.push_back(MakeSum({over_data}, {}, sum, Argument(3, 4), "loss.sum"));
  body.push_back(
      MakeProduct({kHidden, kOut, rows, true}, {h, d, own}, "w.gradient"));
  body.push_back(MakeSum({over_data}, {kHidden, kOut}, own, total, "w.sum"));
  body.push_back(MakeProduct({1, kHidden * kOut, 1, false, true},
                             {lr, total, w, moved}, "w.update"));
  body.push_back(MakeCopy(moved, Argument(5, kWBytes)));
  program.functions.push_back(std::move(second));
  EntryT& entry = AddEntry(program, 3, {0});
  entry.inputs = {2, 1};
  entry.outputs = {0, 2};
  entry.main_updates = {0};
}

std::vector<float> PipelineProgram::StartOfW() {
  return Uniform(kHidden * kOut, 1);
}

std::vector<float> PipelineProgram::StartOfU() {
  return Uniform(kWidth * kHidden, 2);
}

PipelineResult PipelineStep(const std::vector<float>& x,
                            const std::vector<float>& t, float lr,
                            std::vector<float>& w, std::vector<float>& u) {
  using Matrix = std::vector<double>;
  const auto wide = [](const std::vector<float>& values) {
    return Matrix(values.begin(), values.end());
  };
  constexpr size_t width = kWidth, hidden = kHidden, out = kOut;
  Matrix f;
  for (int64_t i = 0; i < kWidth * kWidth; ++i)
    f.push_back(PipelineProgram::Frozen(i));
  const Matrix z = Times(wide(x), Times(f, f, width, width), width, width);
  const Matrix h = Times(z, wide(u), width, hidden);
  const Matrix y = Times(h, wide(w), hidden, out);
  Matrix d = wide(t);
  PipelineResult result;
  double loss = 0;
  for (size_t i = 0; i < d.size(); ++i) {
    d[i] -= y[i];
    loss += d[i] * d[i];
    result.y.push_back(static_cast<float>(y[i]));
  }
  result.loss = static_cast<float>(loss);
  const size_t rows = x.size() / width;
  const Matrix dh = Times(d, Transposed(wide(w), out), out, hidden);
  Move(u, lr, Times(Transposed(z, width), dh, rows, hidden));
  Move(w, lr, Times(Transposed(h, hidden), d, rows, out));
  return result;
}

}  // namespace partita::program
