// A program that starts collectives beside a call. Every kind of damage to it
// must be refused with its place.
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "runtime/program/test_program.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

std::unique_ptr<InstructionT> Start(int token, Buffer in, Buffer out) {
  auto sum = MakeSum({WholeAxis(0, 2)}, {16}, in, out, "sum");
  sum->operation.AsCollective()->token = token;
  return sum;
}

// main(x, p) -> y, p': starts two sums, runs a layer on its own frame, awaits
// both, then updates p.
struct StartingProgram {
  ProgramT program;

  StartingProgram() {
    program.mesh = MakeMesh({{"data", 2}});
    program.target = "cpu";
    program.inputs.push_back(MakePort("x", DType::f32, {16}));
    program.outputs.push_back(MakePort("y", DType::f32, {16}));
    program.parameters.push_back(
        MakeSeeded("p", DType::f32, {16}, "uniform", 1));
    auto layer = MakeFunction("layer", 2, 1, 64);
    layer->body.push_back(MakeCopy(Argument(0, 64), Frame(0, 64)));
    layer->body.push_back(MakeCopy(Frame(0, 64), Argument(1, 64)));
    auto main = MakeFunction("main", 4, 2, 256);
    main->body.push_back(Start(7, Argument(0, 64), Frame(0, 64)));
    main->body.push_back(Start(3, Argument(1, 64), Frame(64, 64)));
    main->body.push_back(
        MakeCall(1, 128, {Argument(0, 64), Frame(192, 64)}, 1));
    main->body.push_back(MakeAwait(7));
    main->body.push_back(MakeCopy(Frame(0, 64), Argument(2, 64)));
    main->body.push_back(MakeAwait(3));
    main->body.push_back(MakeCopy(Frame(64, 64), Argument(3, 64)));
    program.functions.push_back(std::move(main));
    program.functions.push_back(std::move(layer));
    AddEntry(program, 0, {0}).main_updates = {0};
  }

  std::vector<std::unique_ptr<InstructionT>>& main() {
    return program.functions[0]->body;
  }
};

std::string Validate(const std::function<void(StartingProgram&)>& damage =
                         [](auto&) {}) {
  StartingProgram starting;
  damage(starting);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Program::Pack(builder, &starting.program));
  return std::string(
      ValidateProgram(
          *flatbuffers::GetRoot<Program>(builder.GetBufferPointer()), 0, false)
          .message());
}

TEST(ValidateStartedTest, WhatDoesNotTouchBusyBuffersIsValid) {
  EXPECT_EQ(Validate(), "");
  // Inputs in flight may be read, also by a second collective.
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[1]->operands[0] = Argument(0, 64);
            }),
            "");
}

TEST(ValidateStartedTest, TokensAreStartedAndAwaitedOnce) {
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[1]->operation.AsCollective()->token = 7;
            }),
            "function 'main', instruction 1: token 7 is started twice");
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[1]->operation.AsCollective()->token = -1;
            }),
            "function 'main', instruction 1: token -1 is negative");
  EXPECT_EQ(Validate([](StartingProgram& p) { p.main()[5] = MakeAwait(7); }),
            "function 'main', instruction 5: token 7 is awaited, but was "
            "awaited before");
  EXPECT_EQ(Validate([](StartingProgram& p) { p.main()[5] = MakeAwait(4); }),
            "function 'main', instruction 5: token 4 is awaited, but was not "
            "started before");
  EXPECT_EQ(
      Validate([](StartingProgram& p) { std::swap(p.main()[0], p.main()[3]); }),
      "function 'main', instruction 0: token 7 is awaited, but was not "
      "started before");
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main().erase(p.main().begin() + 5, p.main().end());
            }),
            "function 'main', instruction 1: token 3 is started and not "
            "awaited");
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[3]->operands = {Frame(0, 64)};
            }),
            "function 'main', instruction 3: await: expected no operands");
}

TEST(ValidateStartedTest, BusyBuffersAreLeftAlone) {
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[2]->operands[0] = Frame(60, 64);
            }),
            "function 'main', instruction 2: operand 0 reads the output of "
            "token 3, which instruction 1 starts and nothing has awaited");
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[2]->operands[1] = Frame(32, 64);
            }),
            "function 'main', instruction 2: operand 1 writes the output of "
            "token 3, which instruction 1 starts and nothing has awaited");
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[1]->operands[0] = Frame(192, 64);
            }),
            "function 'main', instruction 2: operand 1 writes the input of "
            "token 3, which instruction 1 starts and nothing has awaited");
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[1]->operands[1] = Frame(32, 64);
            }),
            "function 'main', instruction 1: operand 1 writes the output of "
            "token 7, which instruction 0 starts and nothing has awaited");
}

TEST(ValidateStartedTest, DestinationsOfRowsAreBusy) {
  // Token 3 sends two rows of x; their destinations lie where the call writes.
  const auto send = [](int64_t destinations) {
    return Validate([=](StartingProgram& p) {
      InstructionT& start = *p.main()[1];
      CollectiveT& rows = *start.operation.AsCollective();
      rows.kind = CollectiveKind::send_rows;
      rows.dim = 0;
      rows.size = 2;
      rows.input_shape = rows.output_shape = {2, 8};
      start.operands = {Argument(0, 64), Frame(destinations, 16),
                        Frame(64, 64)};
    });
  };
  EXPECT_EQ(send(256 - 64),
            "function 'main', instruction 2: operand 1 writes the input of "
            "token 3, which instruction 1 starts and nothing has awaited");
}

TEST(ValidateStartedTest, AFrameOfACalleeOverlapsNothingBusy) {
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[2]->operation.AsCall()->frame_offset = 64;
            }),
            "function 'main', instruction 2: the callee's frame writes the "
            "output of token 3, which instruction 1 starts and nothing has "
            "awaited");
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[1]->operands[0] = Frame(128, 64);
            }),
            "function 'main', instruction 2: the callee's frame writes the "
            "input of token 3, which instruction 1 starts and nothing has "
            "awaited");
}

// p and p' share their memory.
TEST(ValidateStartedTest, AnUpdateWritesItsParameter) {
  EXPECT_EQ(Validate([](StartingProgram& p) {
              p.main()[2]->operands[1] = Argument(3, 64);
            }),
            "function 'main', instruction 2: operand 1 writes the input of "
            "token 3, which instruction 1 starts and nothing has awaited");
}

TEST(ValidateStartedTest, StartedCollectivesAreBounded) {
  const auto many = [](int count) {
    return Validate([count](StartingProgram& p) {
      p.main().clear();
      p.program.functions[0]->frame_bytes = 64 * (count + 1);
      for (int i = 0; i < count; ++i)
        p.main().push_back(Start(i + 1, Argument(0, 64), Frame(64 * i, 64)));
      for (int i = 0; i < count; ++i) p.main().push_back(MakeAwait(i + 1));
    });
  };
  EXPECT_EQ(many(64), "");
  EXPECT_EQ(many(65),
            "function 'main', instruction 64: more than 64 collectives are "
            "started and not awaited");
}

}  // namespace
}  // namespace partita::program
