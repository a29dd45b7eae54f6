// Breaks every rule of ValidateProgram once.
#include "runtime/program/validate.h"

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::program {
namespace {

// The message after `change` to the sample program.
std::string After(const std::function<void(ProgramT&)>& change) {
  SampleProgram sample;
  change(sample.program);
  const std::string bytes = SerializeProgram(sample.program);
  const absl::Status status = ValidateProgram(
      *GetProgram(bytes.data()), sample.data.size(), /*has_code=*/false);
  return std::string(status.message());
}

FunctionT& Main(ProgramT& program) { return *program.functions[2]; }
FunctionT& Layer(ProgramT& program) { return *program.functions[0]; }
GemmT& TheGemm(ProgramT& program) {
  return *Layer(program).body[0]->operation.AsGemm();
}
ConvT& TheConv(ProgramT& program) {
  return *Main(program).body[2]->operation.AsConv();
}

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

TEST(ValidateTest, Pieces) {  // V7
  const auto found = [](std::vector<int64_t> ranges, int64_t range,
                        int operands, int outputs) {
    return After([&](ProgramT& p) {
      LaunchT launch;
      launch.range = range;
      launch.grain = 1;
      launch.ranges = std::move(ranges);
      Main(p).body.push_back(
          MakeLaunch(launch,
                     std::vector<Buffer>(static_cast<size_t>(operands),
                                         Buffer(Space::frame, 0, 4)),
                     outputs));
    });
  };
  const std::string at = "function 'main', instruction 4: ";
  EXPECT_EQ(found({3, 4}, 7, 6, 2), at + "kernel 0 of 0");  // The next check.
  EXPECT_EQ(found({3}, 3, 3, 1),
            at + "launch: 1 pieces with 3 operands, 1 of them written");
  EXPECT_EQ(found({3, 4}, 7, 5, 2),
            at + "launch: 2 pieces with 5 operands, 2 of them written");
  EXPECT_EQ(found({3, 4}, 7, 6, 1),
            at + "launch: 2 pieces with 6 operands, 1 of them written");
  EXPECT_EQ(found({3, 4}, 7, 130, 2),
            at + "launch: 2 pieces with 130 operands, 2 of them written");
  EXPECT_EQ(found({3, 5}, 7, 6, 2),
            at + "launch: pieces are more than the range");
  EXPECT_EQ(found({-3, 10}, 7, 6, 2),
            at + "launch: pieces are more than the range");
  EXPECT_EQ(found({3, 3}, 7, 6, 2),
            at + "launch: pieces are less than the range");
}

TEST(ValidateTest, PiecesOnGpus) {  // V7
  const auto found = [](int pieces, int64_t scratch) {
    return After([&](ProgramT& p) {
      LaunchT launch;
      launch.range = pieces;
      launch.ranges.assign(static_cast<size_t>(pieces), 1);
      launch.grid = launch.block = {1, 1, 1};
      launch.scratch_bytes = scratch;
      Main(p).body.push_back(
          MakeLaunch(launch,
                     std::vector<Buffer>(static_cast<size_t>(3 * pieces),
                                         Buffer(Space::frame, 0, 4)),
                     pieces));
    });
  };
  const std::string at = "function 'main', instruction 4: ";
  EXPECT_EQ(found(1, 0), at + "kernel 0 of 0");  // The next check.
  EXPECT_EQ(found(128, 0), at + "kernel 0 of 0");
  EXPECT_EQ(found(129, 0),
            at +
                "launch on a GPU: 129 pieces of 3 operands, 0 bytes of scratch "
                "or a tensor map do not fit a table of 4096 bytes");
  EXPECT_EQ(found(2, 8),
            at + "launch on a GPU: 2 pieces of 3 operands, 8 bytes of scratch "
                 "or a tensor map do not fit a table of 4096 bytes");
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

TEST(ValidateTest, Gemm) {  // V7
  const std::string where = "function 'layer', instruction 0: gemm";
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).dtype = DType::i8; }),
            where + ": element type must be f32, f16 or bf16, found i8");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).m = 0; }),
            where + ": size 0 is out of range");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).m = 5; }),
            where + ": operand 0 needs 160 bytes, found 128");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).rhs_strides = {64, 8, 2}; }),
            where + ": operand 1 needs 284 bytes, found 256");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).lhs_strides = {1, 1}; }),
            where + " lhs: expected 3 strides, found 2");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).lhs_strides = {1, -8, 1}; }),
            where + " lhs: stride -8 is out of range");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).out_strides = {0, 0, 1}; }),
            where + ": elements of out overlap");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).out_strides = {0, 7, 1}; }),
            where + ": elements of out overlap");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).batch = 2;
              TheGemm(p).lhs_strides[0] = TheGemm(p).rhs_strides[0] = 0;
            }),
            where + ": a batch of which neither lhs nor rhs depends");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).has_residual = true; }),
            where +
                ": expected 5 operands, 1 of them written, found 4, 1 of them "
                "written");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).activation = static_cast<Activation>(50);
            }),
            where + ": unknown activation 50");
}

TEST(ValidateTest, GemmOfBytes) {  // V7
  const std::string where = "function 'layer', instruction 0: gemm";
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).factors = static_cast<GemmFactors>(50);
            }),
            where + ": unknown factors 50");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).factors = GemmFactors::rhs_i8;
              TheGemm(p).activation = Activation::relu;
            }),
            where +
                ": factors of 8 bits with a result other than f32 or i32, a "
                "residual, an activation, or a bias of i32");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).factors = GemmFactors::rhs_i8;
              TheGemm(p).dtype = DType::i32;
              TheGemm(p).activation = Activation::none;
            }),
            where +
                ": factors of 8 bits with a result other than f32 or i32, a "
                "residual, an activation, or a bias of i32");
  const std::string group =
      ", which must be even and positive for factors of 4 bits, and 0 without "
      "a zero for others";
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).factors = GemmFactors::rhs_i4;
              TheGemm(p).group = 3;
            }),
            where + ": group 3" + group);
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).has_zero = true; }),
            where + ": group 0" + group);
  // A scale is an operand of its own.
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).factors = GemmFactors::u8_i8;
              TheGemm(p).activation = Activation::none;
            }),
            where +
                ": expected 5 operands, 1 of them written, found 4, 1 of them "
                "written");
}

TEST(ValidateTest, GemmOfTraining) {  // V7
  const std::string where = "function 'layer', instruction 0: gemm: ";
  const std::string preactivation =
      where +
      "a pre-activation with another activation than gelu_tanh, a residual, or "
      "a bias beside a given one";
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).preactivation = static_cast<Preactivation>(50);
            }),
            where + "unknown pre-activation 50");
  EXPECT_EQ(
      After([](ProgramT& p) { TheGemm(p).sums = static_cast<GemmSums>(50); }),
      where + "unknown sums 50");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).preactivation = Preactivation::kept;
            }),
            preactivation);
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).preactivation = Preactivation::given;
              TheGemm(p).activation = Activation::gelu_tanh;
            }),
            preactivation);
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).preactivation = Preactivation::kept;
              TheGemm(p).activation = Activation::gelu_tanh;
            }),
            where +
                "expected 5 operands, 2 of them written, found 4, 1 of them "
                "written");
  EXPECT_EQ(
      After([](ProgramT& p) { TheGemm(p).sums = GemmSums::rhs; }),
      where +
          "sums beside a batch, factors of 8 bits, a bias, a residual or an "
          "activation");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).sums = GemmSums::lhs;
              TheGemm(p).activation = Activation::none;
              TheGemm(p).has_bias = false;
            }),
            where +
                "expected 4 operands, 2 of them written, found 4, 1 of them "
                "written");
}

TEST(ValidateTest, GroupedGemm) {  // V7
  // The message after `change` to a grouped gemm in place of the gemm.
  const auto after = [](const std::function<void(GroupedGemmT&)>& change) {
    return After([&](ProgramT& p) {
      GroupedGemmT g;
      g.ids = DType::i32;
      g.rows = g.lhs_rows = 4, g.groups = 1, g.n = g.k = 8;
      change(g);
      Layer(p).body[0]->operation.Set(std::move(g));
    });
  };
  const std::string where = "function 'layer', instruction 0: grouped gemm: ";
  EXPECT_EQ(after([](GroupedGemmT&) {}), "");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.lhs_rows = 2; }), "");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.ids = DType::i64; }), "");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.dtype = DType::i8; }),
            where + "element type must be f32, f16 or bf16, found i8");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.ids = DType::f32; }),
            where + "indices must be i32 or i64, found f32");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.ids = static_cast<DType>(90); }),
            where + "indices must be i32 or i64, found an unknown type");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.groups = 0; }),
            where + "size 0 is out of range");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.lhs_rows = 0; }),
            where + "size 0 is out of range");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.groups = g.n = g.k = 1LL << 31; }),
            where + "[2147483648,2147483648,2147483648] is too big");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.lhs_rows = 3; }),
            where + "4 rows are no multiple of lhs's 3");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.weight_grad = g.transposed = true; }),
            where + "a weight gradient that is transposed");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.groups = 2; }),
            where + "operand 1 needs 512 bytes, found 256");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.weight_grad = true; }),
            where + "operand 3 needs 256 bytes, found 128");
}

TEST(ValidateTest, Conv) {  // V7
  const std::string where = "function 'main', instruction 2: conv";
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).groups = 3; }),
            where +
                ": input [1,4,8,8], weight [4,4,3,3], out [1,4,8,8] and 3 "
                "groups do not fit");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).low = {0, 1}; }),
            where +
                ": size 8 of the result's spatial dimension 0 does not follow "
                "from its window");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).strides = {1, 0}; }),
            where + ": a stride, dilation or padding is out of range");
  EXPECT_EQ(
      After([](ProgramT& p) { TheConv(p).strides = {1}; }),
      where +
          ": expected one stride, dilation and padding per spatial dimension");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).weight_shape = {4, 4}; }),
            where + ": input, weight and out must have the same rank, 3 to 5");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).activates_sum = true; }),
            where + ": activates_sum without residual or activation");
  EXPECT_EQ(After([](ProgramT& p) {
              TheConv(p).direction = static_cast<ConvDirection>(7);
            }),
            where + ": unknown direction 7");
  EXPECT_EQ(After([](ProgramT& p) {
              TheConv(p).direction = ConvDirection::input_grad;
              TheConv(p).has_bias = true;
            }),
            where + ": a gradient with bias, residual or activation");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).has_zero = true; }),
            where + ": a zero without factors of 8 bits");
  EXPECT_EQ(
      After([](ProgramT& p) { TheConv(p).factors = GemmFactors::rhs_i8; }),
      where + ": factors must be same, i8 or u8_i8, found 1");
  EXPECT_EQ(After([](ProgramT& p) {
              TheConv(p).factors = GemmFactors::u8_i8;
              TheConv(p).direction = ConvDirection::input_grad;
            }),
            where +
                ": factors of 8 bits in a gradient, with a result other than "
                "f32, i8 or u8, or with a residual of 8 bits");
  EXPECT_EQ(After([](ProgramT& p) {
              TheConv(p).factors = GemmFactors::u8_i8;
              TheConv(p).has_zero = true;
              TheConv(p).dtype = DType::u8;
            }),
            where +
                ": expected 7 operands, 1 of them written, found 3, 1 of them "
                "written");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).dtype = DType::u8; }),
            where + ": element type must be f32, f16 or bf16, found u8");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).has_bias = true; }),
            where +
                ": expected 4 operands, 1 of them written, found 3, 1 of them "
                "written");
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

// The message after `change` to the training program.
std::string AfterTraining(const std::function<void(ProgramT&)>& change) {
  TrainingProgram sample(4, 2, 1);
  change(sample.program);
  const std::string bytes = SerializeProgram(sample.program);
  const absl::Status status = ValidateProgram(
      *GetProgram(bytes.data()), sample.data.size(), /*has_code=*/false);
  return std::string(status.message());
}

TEST(ValidateTest, Roles) {  // V11
  EXPECT_EQ(AfterTraining([](ProgramT&) {}), "");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.inputs[2]->role = PortRole::step; }),
      "input 'lr': the role step is for one whole i64, found f32[]");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.inputs[3]->role = PortRole::learning_rate;
            }),
            "input 'step': it is the second one with the role learning_rate");
  EXPECT_EQ(AfterTraining([](ProgramT& p) { p.inputs[2]->type->shape = {2}; }),
            "input 'lr': the role learning_rate is for one whole f32, found "
            "f32[2]");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.inputs[2]->type->shape = {1};
              p.inputs[2]->shard = MakeShard({2}, {{WholeAxis(0, 2)}});
            }),
            "input 'lr': the role learning_rate is for one whole f32, found "
            "f32[1]");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.inputs[0]->role = static_cast<PortRole>(77);
            }),
            "input 'x': unknown role 77");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.outputs[1]->role = PortRole::step; }),
      "output 'at': outputs have no role");
}

TEST(ValidateTest, Updates) {  // V12, V8
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.entries[0]->main_updates = {0, 3}; }),
      "update 1: parameter 3 of 3");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.entries[0]->main_updates = {-1, 0}; }),
      "update 0: parameter -1 of 3");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.entries[0]->main_updates = {0, 0}; }),
      "update of 'w': it comes twice");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.parameters[1]->kind = ParameterKind::constant;
            }),
            "update of 'count': it is a constant");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.parameters[1]->type = MakeType(DType::i64, {1});
              p.parameters[1]->source.Set(CoordinateSourceT());
            }),
            "update of 'count': it is a coordinate");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.functions.push_back(MakeFunction("init", 1, 0, 0));
              p.entries[0]->init = 1;
              p.entries[0]->init_parameters = {0};
            }),
            "update of 'w': derived values are made from it once");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.entries[0]->main_updates = {0}; }),
      "main: expected 10 arguments, 3 of them results, found 11, 4 of "
      "them results");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.entries[0]->main_updates = {1, 0}; }),
      "main: argument 9 has 4 bytes, but 168 are used");
}

}  // namespace
}  // namespace partita::program
