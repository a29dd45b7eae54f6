// Breaks every rule about entries and transfers once.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

// The message after `change` to two stages over data=2, pipe=2.
std::string After(const std::function<void(ProgramT&)>& change) {
  PipelineProgram pipeline(8, 2);
  change(pipeline.program);
  const std::string bytes = SerializeProgram(pipeline.program);
  return std::string(ValidateProgram(*GetProgram(bytes.data()),
                                     pipeline.data.size(), /*has_code=*/false)
                         .message());
}

FunctionT& First(ProgramT& p) { return *p.functions[2]; }
FunctionT& Second(ProgramT& p) { return *p.functions[3]; }
SendT& TheSend(ProgramT& p) {
  return *p.functions[1]->body[0]->operation.AsSend();
}
ReceiveT& FirstReceive(ProgramT& p) {
  return *Second(p).body[0]->operation.AsReceive();
}

// The message after `change` to the send.
std::string AfterSend(const std::function<void(SendT&)>& change) {
  const std::string message = After([&](ProgramT& p) { change(TheSend(p)); });
  const std::string where = "function 'pass', instruction 0: ";
  return message.rfind(where, 0) == 0 ? message.substr(where.size()) : message;
}

TEST(ValidateEntryTest, TheSampleIsValid) {
  EXPECT_EQ(After([](ProgramT&) {}), "");
}

TEST(ValidateEntryTest, MemoryIsCounted) {  // V16
  const auto after = [](const std::function<void(MemoryTableT&)>& change) {
    return After([&](ProgramT& p) {
      p.entries[1]->memory = std::make_unique<MemoryTableT>();
      change(*p.entries[1]->memory);
    });
  };
  const std::string expected =
      "entry 1, memory: expected 0 to 1125899906842624 bytes of ";
  EXPECT_EQ(after([](MemoryTableT& m) { m.scratch = kMaxMemory; }), "");
  EXPECT_EQ(after([](MemoryTableT& m) { m.scratch = kMaxMemory + 1; }),
            expected + "scratch, found 1125899906842625");
  // Every row is checked.
  const std::pair<const char*, int64_t MemoryTableT::*> rows[] = {
      {"parameters", &MemoryTableT::parameters},
      {"states", &MemoryTableT::states},
      {"gradients", &MemoryTableT::gradients},
      {"activations", &MemoryTableT::activations},
      {"communication", &MemoryTableT::communication},
      {"derived", &MemoryTableT::derived},
      {"ports", &MemoryTableT::ports},
      {"scratch", &MemoryTableT::scratch},
      {"gaps", &MemoryTableT::gaps},
      {"most_gradients", &MemoryTableT::most_gradients},
      {"host", &MemoryTableT::host},
      {"files", &MemoryTableT::files}};
  for (const auto& [name, row] : rows)
    EXPECT_EQ(after([row = row](MemoryTableT& m) { m.*row = -1; }),
              expected + name + ", found -1");
}

TEST(ValidateEntryTest, Pipelines) {  // V13
  EXPECT_EQ(After([](ProgramT& p) { p.entries.clear(); }),
            "expected at least one entry, found none");
  EXPECT_EQ(After([](ProgramT& p) { p.entries.pop_back(); }),
            "pipeline: expected an entry for each of 2 devices, found 1");
  EXPECT_EQ(After([](ProgramT& p) { p.pipeline = {{2, 1, 2}}; }),
            "pipeline: axis 2 of 2");
  EXPECT_EQ(After([](ProgramT& p) { p.mesh = nullptr; }),
            "input 'x': an axis is named, but there is no mesh");
  const std::string apart =
      "axis 'pipe' belongs to the pipeline: its devices run different "
      "functions";
  const auto over_pipe = [](ProgramT& p) {
    p.inputs[0]->shard->dims[0]->axes = {WholeAxis(1, 2)};
  };
  EXPECT_EQ(After(over_pipe), "input 'x': " + apart);
  EXPECT_EQ(After([](ProgramT& p) {
              p.outputs[2]->shard->dims[0]->axes = {WholeAxis(1, 2)};
            }),
            "output 'y': " + apart);
  EXPECT_EQ(After([](ProgramT& p) {
              p.parameters[0]->shard = MakeShard({10, 7}, {{{1, 1, 2}}, {}});
            }),
            "parameter 'w': " + apart);
  EXPECT_EQ(After([](ProgramT& p) {
              p.parameters[2]->type = MakeType(DType::i64, {1});
              CoordinateSourceT source;
              source.axes = {WholeAxis(1, 2)};
              p.parameters[2]->source.Set(std::move(source));
            }),
            "parameter 'f': " + apart);
  EXPECT_EQ(
      After([](ProgramT& p) {
        Second(p).body[8]->operation.AsCollective()->axes = {WholeAxis(1, 2)};
      }),
      "function 'second', instruction 8: " + apart);
}

TEST(ValidateEntryTest, PartsOfAnAxisMayBeAPipeline) {  // V13
  const auto with = [](AxisPart pipeline) {
    return After([&](ProgramT& p) {
      p.mesh = MakeMesh({{"data", 2}, {"pipe", 4}});
      p.pipeline = {pipeline};
      for (auto& function : p.functions)
        for (auto& instruction : function->body) {
          if (auto* send = instruction->operation.AsSend())
            send->axes = {pipeline};
          if (auto* receive = instruction->operation.AsReceive())
            receive->axes = {pipeline};
        }
      CollectiveT& sum = *Second(p).body[8]->operation.AsCollective();
      sum.axes.push_back({1, 1, 2});
    });
  };
  EXPECT_EQ(with({1, 2, 2}), "");
  EXPECT_EQ(with({1, 1, 2}),
            "function 'second', instruction 8: axis 'pipe' belongs to the "
            "pipeline: its devices run different functions");
}

TEST(ValidateEntryTest, Lists) {  // V3
  EXPECT_EQ(After([](ProgramT& p) { p.entries[1]->inputs[0] = 4; }),
            "entry 1, main: input 4 of 4");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->inputs[1] = 0; }),
            "entry 0, main: input 0 comes twice");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[1]->outputs[1] = -1; }),
            "entry 1, main: output -1 of 3");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[1]->outputs[1] = 0; }),
            "entry 1, main: output 0 comes twice");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[1]->main_globals = {3}; }),
            "entry 1, main: global 3 of 3");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->main_globals = {1, 1}; }),
            "entry 0, main: global 1 comes twice");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->init_parameters = {3}; }),
            "entry 0, init: parameter 3 of 3");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->init_parameters = {2, 2}; }),
            "entry 0, init: parameter 2 comes twice");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[1]->main_updates = {2}; }),
            "parameter 'f': another entry updates it, but entry 0, which reads "
            "it, does not");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->main_updates = {1, 1}; }),
            "entry 0, update of 'u': it comes twice");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->derived[0]->shape = {-1}; }),
            "entry 0, derived value 0: shape [-1] is negative or too big");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->init = -1; }),
            "entry 0, init: there are 1 derived values, but no function "
            "computes them");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[1]->main = 4; }),
            "entry 1, main: function 4 of 4");
}

TEST(ValidateEntryTest, NothingBelongsToNobody) {  // V13
  EXPECT_EQ(After([](ProgramT& p) {
              p.inputs.push_back(MakePort("more", DType::f32, {}));
            }),
            "input 'more': no entry uses it");
  EXPECT_EQ(After([](ProgramT& p) {
              p.outputs.push_back(MakePort("more", DType::f32, {}));
            }),
            "output 'more': no entry uses it");
  EXPECT_EQ(
      After([](ProgramT& p) {
        p.parameters.push_back(MakeSeeded("more", DType::f32, {}, "zeros", 0));
        p.entries[0]->main_globals = {1, 4};
      }),
      "parameter 'more': no entry uses it");
}

TEST(ValidateEntryTest, CopiesStayEqual) {  // V13
  const auto hold = [](ProgramT& p) {
    Second(p).arguments = 7;
    for (auto& instruction : Second(p).body)
      for (Buffer& buffer : instruction->operands)
        if (buffer.space() == Space::argument && buffer.value() > 2)
          buffer = Argument(buffer.value() + 1, buffer.bytes());
    p.entries[1]->main_globals = {0, 2};
  };
  EXPECT_EQ(After(hold), "");
  EXPECT_EQ(After([&](ProgramT& p) {
              hold(p);
              p.entries[1]->main_globals = {0, 1};
            }),
            "parameter 'u': another entry updates it, but entry 1, which "
            "reads it, does not");
}

TEST(ValidateEntryTest, Transfers) {  // V14
  EXPECT_EQ(AfterSend([](SendT& s) { s.axes = {WholeAxis(0, 2)}; }),
            "send: its axes are not those of the pipeline");
  EXPECT_EQ(AfterSend([](SendT& s) { s.axes.clear(); }),
            "send: its axes are not those of the pipeline");
  EXPECT_EQ(AfterSend([](SendT& s) { s.peer = 2; }),
            "send: peer 2 of 2 entries");
  EXPECT_EQ(AfterSend([](SendT& s) { s.peer = -1; }),
            "send: peer -1 of 2 entries");
  EXPECT_EQ(AfterSend([](SendT& s) { s.dtype = static_cast<DType>(77); }),
            "send: unknown element type 77");
  EXPECT_EQ(AfterSend([](SendT& s) { s.shape = {-1}; }),
            "send: its shape is negative or too big");
  EXPECT_EQ(AfterSend([](SendT& s) { s.shape.assign(40, 1); }),
            "send: a shape of 40 dimensions");
  EXPECT_EQ(AfterSend([](SendT& s) { s.shape = {3, 5}; }),
            "send: its operand needs 60 bytes, found 40");
  EXPECT_EQ(AfterSend([](SendT& s) { s.peer = 0; }),
            "entry 0, function 'pass', instruction 0: its peer is the entry "
            "itself");
  EXPECT_EQ(After([](ProgramT& p) {
              p.functions[1]->body[0]->operands.push_back(Argument(0, 4));
            }),
            "function 'pass', instruction 0: send: expected 1 operand, 0 of "
            "them written, found 2, 0 of them written");
  EXPECT_EQ(After([](ProgramT& p) { Second(p).body[0]->outputs = 0; }),
            "function 'second', instruction 0: receive: expected 1 operand, "
            "1 of them written, found 1, 0 of them written");
  EXPECT_EQ(After([](ProgramT& p) {
              p.entries.pop_back();
              p.pipeline.clear();
            }),
            "function 'pass', instruction 0: send: the program has no "
            "pipeline");
}

TEST(ValidateEntryTest, EverySendMeetsAReceive) {  // V14
  EXPECT_EQ(After([](ProgramT& p) { FirstReceive(p).shape = {5, 2}; }),
            "entry 1, function 'second', instruction 0: it receives f32[5,2], "
            "but entry 0, function 'pass', instruction 0 sends f32[2,5]");
  EXPECT_EQ(After([](ProgramT& p) {
              FirstReceive(p).dtype = DType::f16;
              Second(p).body[1]->operation.AsReceive()->dtype = DType::f16;
            }),
            "entry 1, function 'second', instruction 0: it receives f16[2,5], "
            "but entry 0, function 'pass', instruction 0 sends f32[2,5]");
  EXPECT_EQ(After([](ProgramT& p) {
              Second(p).body.erase(Second(p).body.begin() + 6);
            }),
            "entry 0, function 'first', instruction 5: it receives what entry "
            "1 does not send");
  EXPECT_EQ(
      After([](ProgramT& p) { Second(p).body.erase(Second(p).body.begin()); }),
      "entry 0, function 'pass', instruction 0: what it sends to entry "
      "1, that one does not receive");
}

TEST(ValidateEntryTest, NoEntriesWaitForEachOther) {  // V14
  EXPECT_EQ(
      After([](ProgramT& p) { std::swap(First(p).body[2], First(p).body[4]); }),
      "entry 0, function 'first', instruction 2: it waits for entry 1, "
      "which at function 'second', instruction 0 waits for "
      "entry 0: none of them can go on");
}

TEST(ValidateEntryTest, InitSendsNothing) {  // V14
  EXPECT_EQ(
      After([](ProgramT& p) {
        p.functions[0]->body.push_back(MakeCall(1, 0, {Argument(0, 144)}, 0));
      }),
      "entry 0, init: it sends or receives, which only main may");
}

}  // namespace
}  // namespace partita::program
