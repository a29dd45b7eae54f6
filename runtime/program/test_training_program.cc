// Uses only matrix products: sums are products with ones, and the update is the
// product of the learning rate and the gradient, with a residual.
#include "runtime/program/test_training_program.h"

#include <memory>
#include <string>
#include <utility>

#include "runtime/base/random_fill.h"
#include "runtime/program/test_program.h"

namespace partita::program {
TrainingProgram::TrainingProgram(int64_t batch, int64_t data_axis,
                                 int64_t tensor_axis) {
  const bool divided = data_axis * tensor_axis > 1;
  const AxisPart over_data = WholeAxis(0, data_axis);
  const AxisPart over_tensor = WholeAxis(1, tensor_axis);
  const int64_t rows = (batch + data_axis - 1) / data_axis;
  const int64_t columns = (kOut + tensor_axis - 1) / tensor_axis;
  const int64_t x_bytes = rows * kWidth * 4, t_bytes = rows * columns * 4,
                w_bytes = kWidth * columns * 4, f_bytes = kWidth * kWidth * 4;

  if (divided)
    program.mesh = MakeMesh({{"data", data_axis}, {"tensor", tensor_axis}});
  program.target = "cpu";
  program.inputs.push_back(MakePort("x", DType::f32, {rows, kWidth}));
  program.inputs.push_back(MakePort("t", DType::f32, {rows, columns}));
  program.inputs.push_back(MakePort("lr", DType::f32, {}));
  program.inputs[2]->role = PortRole::learning_rate;
  program.inputs.push_back(MakePort("step", DType::i64, {}));
  program.inputs[3]->role = PortRole::step;
  program.outputs.push_back(MakePort("loss", DType::f32, {}));
  program.outputs.push_back(MakePort("at", DType::i64, {}));
  program.parameters.push_back(
      MakeSeeded("w", DType::f32, {kWidth, columns}, "uniform", 1));
  program.parameters.push_back(MakeSeeded("count", DType::f32, {}, "zeros", 0));
  program.parameters[1]->kind = ParameterKind::state;
  if (divided) {
    program.inputs[0]->shard = MakeShard({batch, kWidth}, {{over_data}, {}});
    program.inputs[1]->shard =
        MakeShard({batch, kOut}, {{over_data}, {over_tensor}});
    program.parameters[0]->shard =
        MakeShard({kWidth, kOut}, {{}, {over_tensor}});
  }
  std::vector<float> f;
  for (int64_t i = 0; i < kWidth * kWidth; ++i) f.push_back(Frozen(i));
  const int64_t f_offset = data.Add(BytesOfValues(f));
  program.parameters.push_back(MakeEmbedded("f", DType::f32, {kWidth, kWidth},
                                            static_cast<uint64_t>(f_offset),
                                            DType::f32));
  const int64_t minus_one = data.Add(BytesOfValues<float>({-1}));
  const int64_t one = data.Add(BytesOfValues<float>({1}));

  // main(x, t, lr, step, w, count, f) -> loss, at, w', count'
  const Buffer x = Argument(0, x_bytes), t = Argument(1, t_bytes),
               lr = Argument(2, 4), step = Argument(3, 8),
               w = Argument(4, w_bytes), count = Argument(5, 4),
               loss = Argument(7, 4), new_w = Argument(9, w_bytes);
  FrameSpace frame;
  const Buffer h = frame.Add(x_bytes), y = frame.Add(t_bytes),
               d = frame.Add(t_bytes), sum = frame.Add(4),
               g = frame.Add(w_bytes), total = frame.Add(w_bytes),
               moved = frame.Add(w_bytes), counted = frame.Add(4);
  auto main = MakeFunction("main", 11, 4, frame.bytes());
  auto& body = main->body;
  body.push_back(MakeProduct({rows, kWidth, kWidth},
                             {x, Argument(6, f_bytes), h}, "hidden"));
  body.push_back(MakeProduct({rows, columns, kWidth}, {h, w, y}, "predict"));
  body.push_back(MakeProduct({rows * columns, 1, 1, false, true},
                             {y, Constant(minus_one, 4), t, d}, "difference"));
  body.push_back(
      MakeProduct({1, 1, rows * columns}, {d, d, divided ? sum : loss}, "sum"));
  body.push_back(MakeProduct({kWidth, columns, rows, true},
                             {h, d, divided ? g : total}, "gradient"));
  if (divided) {
    body.push_back(
        MakeSum({over_data, over_tensor}, {}, sum, loss, "loss.sum"));
    body.push_back(MakeSum({over_data}, {kWidth, columns}, g, total, "w.sum"));
  }
  body.push_back(MakeProduct({1, kWidth * columns, 1, false, true},
                             {lr, total, w, moved}, "update"));
  body.push_back(MakeProduct(
      {1, 1, 1, false, true},
      {Constant(one, 4), Constant(one, 4), count, counted}, "count"));
  body.push_back(MakeCopy(step, Argument(8, 8)));
  body.push_back(MakeCopy(moved, new_w));
  body.push_back(MakeCopy(counted, Argument(10, 4)));
  program.functions.push_back(std::move(main));
  AddEntry(program, 0, {0, 1, 2}).main_updates = {0, 1};
}

std::vector<float> TrainingProgram::Start() {
  std::vector<float> w(static_cast<size_t>(kWidth * kOut));
  // Cannot fail: the distribution is known.
  (void)base::FillElements({"uniform", 1.0, 1}, base::DType::kF32, 0,
                           kWidth * kOut, w.data());
  return w;
}

float TrainingStep(const std::vector<float>& x, const std::vector<float>& t,
                   float lr, std::vector<float>& w) {
  constexpr size_t kWidth = TrainingProgram::kWidth,
                   kOut = TrainingProgram::kOut;
  std::vector<double> gradient(w.size(), 0);
  double loss = 0;
  for (size_t row = 0; row < x.size() / kWidth; ++row) {
    double h[kWidth] = {};
    for (size_t i = 0; i < kWidth * kWidth; ++i)
      h[i % kWidth] += x[row * kWidth + i / kWidth] *
                       TrainingProgram::Frozen(static_cast<int64_t>(i));
    for (size_t column = 0; column < kOut; ++column) {
      double d = t[row * kOut + column];
      for (size_t k = 0; k < kWidth; ++k) d -= h[k] * w[k * kOut + column];
      loss += d * d;
      for (size_t k = 0; k < kWidth; ++k)
        gradient[k * kOut + column] += h[k] * d;
    }
  }
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = static_cast<float>(w[i] + lr * gradient[i]);
  return static_cast<float>(loss);
}

}  // namespace partita::program
