// Breaks the rules of ValidateProgram that hold for all operations once.
#include "runtime/program/validate.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/program/test_program.h"
#include "runtime/program/validate_testing.h"

namespace partita::program {
namespace {

TEST(ValidateTest, TheSampleIsValid) {
  EXPECT_EQ(After([](ProgramT&) {}), "");
}

TEST(ValidateTest, FilesOfStates) {  // V17
  const auto after = [](const std::string& folder, int64_t buffers) {
    return After([&](ProgramT& p) {
      p.state_files = std::make_unique<StateFilesT>();
      p.state_files->folder = folder;
      p.state_files->buffers = buffers;
    });
  };
  EXPECT_EQ(after("s", 0), "");
  EXPECT_EQ(after("", 0),
            "states in files: expected a folder and a size of buffers, found "
            "'' and 0 bytes");
  EXPECT_EQ(after("s", -1),
            "states in files: expected a folder and a size of buffers, found "
            "'s' and -1 bytes");
}

TEST(ValidateTest, Types) {  // V1
  EXPECT_EQ(After([](ProgramT& p) {
              p.inputs[0]->type->dtype = static_cast<DType>(77);
            }),
            "input 'x': unknown element type 77");
  EXPECT_EQ(After([](ProgramT& p) { p.outputs[0]->type->shape = {-1}; }),
            "output 'y': shape [-1] is negative or too big");
  EXPECT_EQ(After([](ProgramT& p) {
              p.entries[0]->derived[0]->shape = {1 << 30, 1 << 30, 1 << 30};
            }),
            "derived value 0: shape [1073741824,1073741824,1073741824] is "
            "negative or too big");
  EXPECT_EQ(After([](ProgramT& p) { p.inputs[0]->type->shape.assign(40, 1); }),
            "input 'x': a shape of 40 dimensions; at most 32");
  EXPECT_EQ(After([](ProgramT& p) { p.inputs[1]->name = "x"; }),
            "two inputs are named 'x'");
}

TEST(ValidateTest, Sources) {  // V2
  EXPECT_EQ(
      After([](ProgramT& p) {
        p.parameters[3]->source.AsEmbeddedSource()->offset = 128;
      }),
      "parameter 'b': bytes 128 to 128+32 lie outside the 128 bytes there are");
  EXPECT_EQ(After([](ProgramT& p) {
              p.parameters[3]->source.AsEmbeddedSource()->offset =
                  std::numeric_limits<uint64_t>::max();
            }),
            "parameter 'b': bytes 18446744073709551615 to "
            "18446744073709551615+32 lie outside the 128 bytes there are");
  EXPECT_EQ(After([](ProgramT& p) {
              p.parameters[3]->source.AsEmbeddedSource()->bytes = 31;
            }),
            "parameter 'b': expected 8 elements of f32, found 31 bytes");
  EXPECT_EQ(After([](ProgramT& p) {
              p.parameters[3]->source.AsEmbeddedSource()->stored = DType::f64;
            }),
            "parameter 'b': expected 8 elements of f64, found 32 bytes");
  EXPECT_EQ(After([](ProgramT& p) {
              p.parameters[0]->source.AsSeedSource()->kind = "magic";
            }),
            "parameter 'w0': unknown distribution 'magic'");
  EXPECT_EQ(After([](ProgramT& p) {
              p.parameters[0]->source.AsSeedSource()->scale =
                  std::numeric_limits<double>::infinity();
            }),
            "parameter 'w0': its scale is not finite");
  EXPECT_EQ(
      After([](ProgramT& p) { p.parameters[0]->type->dtype = DType::i32; }),
      "parameter 'w0': distribution 'uniform' needs a floating-point type");
  EXPECT_EQ(After([](ProgramT& p) {
              p.parameters[0] =
                  MakeFromFile("w0", DType::f32, {8, 8}, "", 0, DType::f32);
            }),
            "parameter 'w0': its file has no name");
}

TEST(ValidateTest, Parts) {  // V2
  const auto with_parts = [](int count, uint64_t bytes) {
    return After([=](ProgramT& p) {
      PartsSourceT source;
      for (int i = 0; i < count; ++i) {
        source.parts.push_back(std::make_unique<FileSourceT>());
        source.parts.back()->path = "w";
        source.parts.back()->bytes = bytes;
        source.parts.back()->stored = DType::f32;
      }
      p.parameters[0]->source.Set(std::move(source));
    });
  };
  EXPECT_EQ(with_parts(8, 32), "");
  EXPECT_EQ(with_parts(0, 32),
            "parameter 'w0': its 64 elements cannot lie in 0 equal parts");
  EXPECT_EQ(with_parts(3, 32),
            "parameter 'w0': its 64 elements cannot lie in 3 equal parts");
  EXPECT_EQ(with_parts(8, 36),
            "parameter 'w0': expected 8 elements of f32, found 36 bytes");
}

TEST(ValidateTest, Indices) {  // V3
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->main = -1; }),
            "main: function -1 of 3");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->init = 3; }),
            "init: function 3 of 3");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->init = -1; }),
            "init: there are 1 derived values, but no function computes them");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->main_globals[3] = 5; }),
            "main: global 5 of 5");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->init_parameters[0] = 4; }),
            "init: parameter 4 of 4");
  EXPECT_EQ(After([](ProgramT& p) {
              Main(p).body[0]->operation.AsCall()->function = 3;
            }),
            "function 3 of 3");
  EXPECT_EQ(After([](ProgramT& p) { p.kernels.push_back(MakeKernel("k")); }),
            "kernels are named, but there is no code section");
  EXPECT_EQ(
      After([](ProgramT& p) { Main(p).body.push_back(MakeLaunch({}, {}, 0)); }),
      "function 'main', instruction 4: kernel 0 of 0");
}

TEST(ValidateTest, OnlyStatesLieOnTheHost) {  // V2
  EXPECT_EQ(After([](ProgramT& p) { p.parameters[0]->host = true; }),
            "parameter 'w0': it lies on the host, as only states may");
}

TEST(ValidateTest, Calls) {  // V4
  EXPECT_EQ(After([](ProgramT& p) {
              Main(p).body[0]->operation.AsCall()->function = 2;
            }),
            "function 'main' calls itself");
  // Two calls each double the work: 2^30 steps from 30 functions.
  EXPECT_EQ(After([](ProgramT& p) {
              p.functions.push_back(MakeFunction("f0", 0, 0, 0));
              p.functions.back()->body.push_back(
                  MakeCopy(Constant(0, 0), Constant(0, 0)));
              p.functions.back()->body[0]->outputs = 0;
              p.functions.back()->body.clear();
              for (int i = 1; i <= 30; ++i) {
                auto f = MakeFunction("f", 0, 0, 0);
                for (int j = 0; j < 2; ++j)
                  f->body.push_back(MakeCall(2 + i, 0, {}, 0));
                p.functions.push_back(std::move(f));
              }
            }),
            "function 'f', call of 'f': more than 2097152 steps");
  EXPECT_EQ(After([](ProgramT& p) {
              p.functions.push_back(MakeFunction("leaf", 0, 0, 0));
              for (int i = 1; i <= 70; ++i) {
                auto f = MakeFunction("f", 0, 0, 0);
                f->body.push_back(MakeCall(2 + i, 0, {}, 0));
                p.functions.push_back(std::move(f));
              }
            }),
            "function 'f', call of 'f': calls are more than 64 deep");
}

TEST(ValidateTest, Places) {  // V5
  const auto set = [](Buffer buffer) {
    return [buffer](ProgramT& p) { Main(p).body[0]->operands[0] = buffer; };
  };
  const std::string where = "function 'main', instruction 0: operand 0 ";
  EXPECT_EQ(After(set(Argument(9, 128))), where + "lies outside its argument");
  EXPECT_EQ(After(set(Argument(-1, 128))),
            where + "has a negative place or size");
  EXPECT_EQ(After(set(Frame(129, 128))), where + "lies outside its frame");
  EXPECT_EQ(After(set(Frame(0, 1000))), where + "lies outside its frame");
  EXPECT_EQ(After(set(Frame(std::numeric_limits<int64_t>::max(), 128))),
            where + "lies outside its frame");
  EXPECT_EQ(After(set(Constant(64, 128))), where + "lies outside its constant");
  EXPECT_EQ(After(set(Buffer(static_cast<Space>(9), 0, 0))),
            where + "is in an unknown space");
  const std::string call = "function 'main', call of 'layer': ";
  EXPECT_EQ(After([](ProgramT& p) {
              Main(p).body[0]->operation.AsCall()->frame_offset = 192;
            }),
            call + "the callee's frame lies outside the caller's");
  EXPECT_EQ(After([](ProgramT& p) {
              Main(p).body[0]->operation.AsCall()->frame_offset = 96;
            }),
            call + "the callee's frame lies outside the caller's");
  EXPECT_EQ(After([](ProgramT& p) { Main(p).frame_bytes = 100; }),
            "function 'main': a frame of 100 bytes");
  EXPECT_EQ(After([](ProgramT& p) {
              Main(p).body[0]->operands[1] = Argument(2, 100);
            }),
            call + "operand 1 needs 256 bytes, found 100");
  EXPECT_EQ(
      After([](ProgramT& p) {
        Main(p).body[0]->operands.erase(Main(p).body[0]->operands.begin());
      }),
      call +
          "expected 4 operands, 1 of them written, found 3, 1 of them written");
}

TEST(ValidateTest, Writes) {  // V6
  EXPECT_EQ(After([](ProgramT& p) {
              Layer(p).body[1]->operands[1] = Argument(0, 128);
            }),
            "function 'layer', instruction 1: operand 1 writes argument 0, "
            "which is not a result");
  EXPECT_EQ(
      After([](ProgramT& p) {
        Layer(p).body[1]->operands[1] = Constant(0, 128);
      }),
      "function 'layer', instruction 1: operand 1 writes to the data section");
  EXPECT_EQ(After([](ProgramT& p) { Layer(p).body[1]->outputs = 3; }),
            "function 'layer', instruction 1: 3 outputs of 2 operands");
}

TEST(ValidateTest, OutputTypes) {  // V5
  const auto with = [](std::vector<int64_t> shape, int count = 1) {
    return After([=](ProgramT& p) {
      for (int i = 0; i < count; ++i) {
        auto type = std::make_unique<TensorTypeT>();
        type->shape = shape;
        Layer(p).body[1]->output_types.push_back(std::move(type));
      }
    });
  };
  EXPECT_EQ(with({2}), "");
  EXPECT_EQ(with({-2}),
            "function 'layer', instruction 1: output 0: shape [-2] is negative "
            "or too big");
  EXPECT_EQ(with({1 << 20}),
            "function 'layer', instruction 1: output 0 of 128 bytes has a type "
            "of 4194304");
  EXPECT_EQ(with({2}, 3),
            "function 'layer', instruction 1: 3 types of 1 outputs");
}

TEST(ValidateTest, Copy) {  // V7
  EXPECT_EQ(After([](ProgramT& p) {
              Layer(p).body[1]->operands[1] = Argument(3, 64);
            }),
            "function 'layer', instruction 1: copy: operands of equal size "
            "expected, found 128 and 64 bytes");
}

TEST(ValidateTest, Entries) {  // V8
  EXPECT_EQ(After([](ProgramT& p) { p.inputs[0]->type->shape = {4, 7}; }),
            "main: argument 0 has 112 bytes, but 128 are used");
  EXPECT_EQ(After([](ProgramT& p) { p.entries[0]->outputs.pop_back(); }),
            "main: expected 8 arguments, 2 of them results, found 9, 3 of them "
            "results");
  EXPECT_EQ(
      After([](ProgramT& p) { p.entries[0]->derived[0]->shape = {8, 7}; }),
      "main: argument 5 has 224 bytes, but 256 are used");
  EXPECT_EQ(
      After([](ProgramT& p) { p.entries[0]->init_parameters.pop_back(); }),
      "init: expected 3 arguments, 1 of them results, found 4, 1 of them "
      "results");
}

}  // namespace
}  // namespace partita::program
