#include "runtime/program/test_loop_program.h"

#include <utility>
#include <vector>

#include "runtime/program/loop.h"
#include "runtime/program/test_program.h"

namespace partita::program {

LoopProgram::LoopProgram(bool last) {
  constexpr int64_t kRows = 4, kWidth = 8;
  constexpr int64_t kX = kRows * kWidth * 4, kW = kWidth * kWidth * 4;
  program.target = "cpu";
  for (auto* ports : {&program.inputs, &program.outputs})
    for (const char* name : {"go", "a", "b", "x"})
      ports->push_back(name[0] == 'x'
                           ? MakePort("x", DType::f32, {kRows, kWidth})
                           : MakePort(name, DType::i1, {}));
  std::vector<float> w(kWidth * kWidth, 0);
  for (int64_t i = 0; i < kWidth; ++i)
    w[static_cast<size_t>(i * (kWidth + 1))] = 2;
  program.parameters.push_back(MakeEmbedded(
      "w", DType::f32, {kWidth, kWidth},
      static_cast<uint64_t>(data.Add(BytesOfValues(w))), DType::f32));
  const int64_t last_offset = data.Add(std::string(1, last ? 1 : 0));

  // body(go, a, b, x, w) -> go, a, b, x
  auto body = MakeFunction("body", 9, 4, 0);
  body->body.push_back(MakeCopy(Argument(1, 1), Argument(5, 1)));
  body->body.push_back(MakeCopy(Argument(2, 1), Argument(6, 1)));
  body->body.push_back(MakeCopy(Constant(last_offset, 1), Argument(7, 1)));
  body->body.push_back(MakeProduct(
      {kRows, kWidth, kWidth},
      {Argument(3, kX), Argument(4, kW), Argument(8, kX)}, "twice"));
  program.functions.push_back(std::move(body));

  // main(go, a, b, x, w) -> go, a, b, x
  auto main = MakeFunction("main", 9, 4, 3 * kLoopAlignment + LoopBytes(kX));
  main->body.push_back(
      MakeCall(0, 0,
               {Argument(0, 1), Argument(1, 1), Argument(2, 1), Argument(3, kX),
                Argument(4, kW), Argument(5, 1), Argument(6, 1), Argument(7, 1),
                Argument(8, kX)},
               4));
  main->body[0]->operation.AsCall()->repeats = true;
  program.functions.push_back(std::move(main));
  AddEntry(program, 1, {0});
}

}  // namespace partita::program
