// Breaks every rule about meshes, shards, coordinates and collectives once.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/program/mesh.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

// The message after `change` to a program over data=2, tensor=3.
std::string After(const std::function<void(ProgramT&)>& change) {
  DividedProgram divided(5, 2, 3);
  change(divided.program);
  const std::string bytes = SerializeProgram(divided.program);
  return std::string(ValidateProgram(*GetProgram(bytes.data()),
                                     divided.data.size(), /*has_code=*/false)
                         .message());
}

// The message after `change` to the all_reduce of f32[3,8] over tensor.
std::string AfterCollective(const std::function<void(CollectiveT&)>& change) {
  std::string message = After([&](ProgramT& p) {
    change(*p.functions[0]->body[2]->operation.AsCollective());
  });
  const std::string where = "function 'main', instruction 2: ";
  return message.rfind(where, 0) == 0 ? message.substr(where.size()) : message;
}

TEST(ValidateMeshTest, TheSampleIsValid) {
  EXPECT_EQ(After([](ProgramT&) {}), "");
}

TEST(ValidateMeshTest, Meshes) {  // V9
  EXPECT_EQ(After([](ProgramT& p) { p.mesh->axes[1]->name = "data"; }),
            "mesh: an axis without a name, or two named 'data'");
  EXPECT_EQ(After([](ProgramT& p) { p.mesh->axes[0]->size = 0; }),
            "mesh: axis 'data' of size 0 gives none or more than 1048576 "
            "devices");
  EXPECT_EQ(After([](ProgramT& p) { p.mesh->axes[1]->size = 1 << 20; }),
            "mesh: axis 'tensor' of size 1048576 gives none or more than "
            "1048576 devices");
  EXPECT_EQ(After([](ProgramT& p) { p.mesh->device_ids = {0, 1}; }),
            "mesh: 2 device ids for 6 devices");
  EXPECT_EQ(After([](ProgramT& p) { p.mesh->device_ids = {0, 1, 2, 3, 4, 4}; }),
            "mesh: device id 4 is out of range or there twice");
  EXPECT_EQ(After([](ProgramT& p) { p.mesh = nullptr; }),
            "input 'x': an axis is named, but there is no mesh");
}

TEST(ValidateMeshTest, Axes) {  // V9
  const auto with = [](std::vector<AxisPart> axes) {
    return After(
        [&](ProgramT& p) { p.inputs[0]->shard->dims[0]->axes = axes; });
  };
  EXPECT_EQ(with({{2, 1, 2}}), "input 'x': axis 2 of 2");
  EXPECT_EQ(with({{-1, 1, 2}}), "input 'x': axis -1 of 2");
  EXPECT_EQ(with({{1, 1, 2}}), "input 'x': part (1)2 of an axis of size 3");
  EXPECT_EQ(with({{1, 0, 3}}), "input 'x': part (0)3 of an axis of size 3");
  EXPECT_EQ(with({{0, 1, 2}, {0, 1, 2}}),
            "input 'x': axis data meets axis data");
  EXPECT_EQ(After([](ProgramT& p) {
              p.inputs[0]->shard->dims[1]->axes = {{0, 1, 2}};
              p.inputs[0]->shard->dims[1]->block = 8;
            }),
            "input 'x': axis data meets axis data");
}

TEST(ValidateMeshTest, PartsOfOneAxisMayStandSideBySide) {
  const auto parts = [](AxisPart a, AxisPart b) {
    return After([&](ProgramT& p) {
      p.mesh->axes[1]->size = 12;
      p.outputs.pop_back();
      p.functions[0]->body.pop_back();
      p.functions[0]->arguments = 7;
      p.functions[0]->results = 2;
      p.entries[0]->outputs = {0, 1};
      for (auto& parameter : p.parameters) {
        if (parameter->shard == nullptr) continue;
        for (auto& dim : parameter->shard->dims)
          if (!dim->axes.empty()) dim->axes = {{1, 1, 3}};
      }
      p.parameters[3]->source.AsCoordinateSource()->axes = {a, b};
      CollectiveT& sum = *p.functions[0]->body[2]->operation.AsCollective();
      sum.axes = {{1, 1, 3}};
    });
  };
  EXPECT_EQ(parts({1, 1, 3}, {1, 3, 2}), "");
  EXPECT_EQ(parts({1, 6, 2}, {1, 1, 3}), "");
  EXPECT_EQ(parts({1, 1, 4}, {1, 6, 2}),
            "parameter 'place': axis tensor:(6)2 meets axis tensor:(1)4");
  EXPECT_EQ(parts({1, 2, 3}, {1, 1, 4}),
            "parameter 'place': axis tensor:(1)4 meets axis tensor:(2)3");
}

TEST(ValidateMeshTest, Shards) {  // V9
  EXPECT_EQ(After([](ProgramT& p) { p.inputs[0]->shard->dims[0]->block = 2; }),
            "input 'x': dimension 0: 2 blocks of 2 rows do not hold 5");
  EXPECT_EQ(After([](ProgramT& p) { p.inputs[0]->shard->dims[0]->block = 4; }),
            "input 'x': dimension 0: expected a block of 4 rows, found 3");
  EXPECT_EQ(After([](ProgramT& p) { p.inputs[0]->shard->shape[1] = 9; }),
            "input 'x': dimension 1: it is whole, but has 8 of 9 rows");
  EXPECT_EQ(After([](ProgramT& p) { p.inputs[0]->shard->dims.pop_back(); }),
            "input 'x': a shard of 2 dimensions, 1 of them described, for a "
            "tensor of 2");
  EXPECT_EQ(After([](ProgramT& p) { p.inputs[0]->shard->shape[0] = -5; }),
            "input 'x': shape [-5,8] is negative or too big");
  // The source has the size of the undivided tensor.
  EXPECT_EQ(After([](ProgramT& p) {
              p.parameters[2]->source.AsEmbeddedSource()->bytes = 3 * 8 * 4;
            }),
            "parameter 'w1': expected 56 elements of f32, found 96 bytes");
}

TEST(ValidateMeshTest, Coordinates) {  // V9
  EXPECT_EQ(After([](ProgramT& p) { p.parameters[3]->type->shape = {2}; }),
            "parameter 'place': a coordinate is one i64");
  EXPECT_EQ(
      After([](ProgramT& p) { p.parameters[3]->type->dtype = DType::i32; }),
      "parameter 'place': a coordinate is one i64");
}

TEST(ValidateMeshTest, Reductions) {  // V10
  EXPECT_EQ(AfterCollective([](CollectiveT& c) {
              c.kind = static_cast<CollectiveKind>(99);
            }),
            "collective: unknown kind 99");
  EXPECT_EQ(
      AfterCollective([](CollectiveT& c) { c.dtype = static_cast<DType>(99); }),
      "all_reduce: unknown element type 99");
  EXPECT_EQ(AfterCollective([](CollectiveT& c) {
              c.reduction = static_cast<Reduction>(9);
            }),
            "all_reduce: unknown reduction 9");
  EXPECT_EQ(
      AfterCollective([](CollectiveT& c) { c.reduction = Reduction::any; }),
      "all_reduce: reduction any of f32");
  EXPECT_EQ(AfterCollective([](CollectiveT& c) { c.dtype = DType::i1; }),
            "all_reduce: reduction sum of i1");
  EXPECT_EQ(AfterCollective([](CollectiveT& c) { c.output_shape = {3, 7}; }),
            "all_reduce: shapes [3,8] and [3,7] differ in dimension 1");
  EXPECT_EQ(AfterCollective([](CollectiveT& c) { c.input_shape = {24}; }),
            "all_reduce: shapes of 1 and 2 dimensions");
  EXPECT_EQ(AfterCollective([](CollectiveT& c) {
              c.input_shape = c.output_shape = {4, 8};
            }),
            "all_reduce: operand 0 needs 128 bytes, found 96");
  EXPECT_EQ(AfterCollective([](CollectiveT& c) {
              c.input_shape =
                  c.output_shape = {int64_t{1} << 40, int64_t{1} << 40};
            }),
            "all_reduce: a shape is negative or too big");
  EXPECT_EQ(AfterCollective([](CollectiveT& c) { c.axes = {{7, 1, 1}}; }),
            "all_reduce: axis 7 of 2");
}

TEST(ValidateMeshTest, Dimensions) {  // V10
  const auto gather = [](int dim, std::vector<int64_t> output) {
    return AfterCollective([&](CollectiveT& c) {
      c.kind = CollectiveKind::all_gather;
      c.dim = dim;
      c.output_shape = std::move(output);
    });
  };
  EXPECT_EQ(gather(2, {3, 8}), "all_gather: dimensions 2 and -1 of 2");
  EXPECT_EQ(gather(0, {10, 8}),
            "all_gather: dimension 0: 3 blocks of 3 rows do not hold 10");
  EXPECT_EQ(gather(0, {9, 7}),
            "all_gather: shapes [3,8] and [9,7] differ in dimension 1");
  const auto scatter = [](CollectiveKind kind, int other_dim,
                          std::vector<int64_t> output) {
    return AfterCollective([&](CollectiveT& c) {
      c.kind = kind;
      c.dim = 1;
      c.other_dim = other_dim;
      c.output_shape = std::move(output);
    });
  };
  EXPECT_EQ(scatter(CollectiveKind::reduce_scatter, -1, {3, 2}),
            "reduce_scatter: dimension 1: 3 blocks of 2 rows do not hold 8");
  EXPECT_EQ(scatter(CollectiveKind::all_slice, -1, {3, 2}),
            "all_slice: dimension 1: 3 blocks of 2 rows do not hold 8");
  EXPECT_EQ(scatter(CollectiveKind::all_to_all, 1, {3, 3}),
            "all_to_all: dimensions 1 and 1 of 2");
  EXPECT_EQ(scatter(CollectiveKind::all_to_all, 0, {10, 3}),
            "all_to_all: dimension 0: 3 blocks of 3 rows do not hold 10");
}

TEST(ValidateMeshTest, ExchangePermuteBroadcast) {  // V10
  const auto exchange = [](int64_t size, int64_t step) {
    return AfterCollective([&](CollectiveT& c) {
      c.kind = CollectiveKind::exchange;
      c.dim = 0;
      c.size = size;
      c.step = step;
    });
  };
  EXPECT_EQ(exchange(9, 3), "");
  EXPECT_EQ(exchange(10, 3),
            "exchange: dimension 0: 3 blocks of 3 rows do not hold 10");
  EXPECT_EQ(exchange(-1, 3),
            "exchange: size -1, step 3 or offset 0 is out of range");
  EXPECT_EQ(exchange(9, int64_t{1} << 60),
            "exchange: size 9, step 1152921504606846976 or offset 0 is out of "
            "range");
  const auto permute = [](std::vector<AxisPart> sources, int64_t offset = 0) {
    return AfterCollective([&](CollectiveT& c) {
      c.kind = CollectiveKind::permute;
      c.offset = offset;
      c.axes = {{0, 1, 2}, {1, 1, 3}};
      c.source_axes = std::move(sources);
    });
  };
  EXPECT_EQ(permute({{1, 1, 3}, {0, 1, 2}}), "");
  EXPECT_EQ(permute({{1, 1, 3}, {0, 1, 2}}, 5), "");
  EXPECT_EQ(permute({{1, 1, 3}, {0, 1, 2}}, 6),
            "permute: offset 6 in a group of 6");
  EXPECT_EQ(permute({{1, 1, 3}}),
            "permute: its axes and source axes are not the same parts");
  EXPECT_EQ(AfterCollective([](CollectiveT& c) {
              c.kind = CollectiveKind::broadcast;
              c.root = 3;
            }),
            "broadcast: root 3 of a group of 3");
}

TEST(ValidateMeshTest, Rows) {  // V10
  const auto rows = [](CollectiveKind kind, int64_t size, int dim = 0,
                       std::vector<int64_t> output = {3, 8}) {
    return AfterCollective([&](CollectiveT& c) {
      c.kind = kind;
      c.dim = dim;
      c.size = size;
      c.output_shape = std::move(output);
    });
  };
  const CollectiveKind send = CollectiveKind::send_rows,
                       back = CollectiveKind::return_rows;
  EXPECT_EQ(rows(send, 6),
            "send_rows: expected 3 operands, 1 of them written, found 2, 1 of "
            "them written");
  EXPECT_EQ(rows(send, 7), "send_rows: 7 destinations of 3 rows");
  EXPECT_EQ(rows(send, -3),
            "send_rows: 2 dimensions, rows along 0 or -3 destinations");
  EXPECT_EQ(rows(send, 3, 1),
            "send_rows: 2 dimensions, rows along 1 or 3 destinations");
  EXPECT_EQ(rows(send, 3, 0, {5, 7}), "send_rows: rows of 8 and 7 elements");
  EXPECT_EQ(rows(back, 4), "return_rows: 4 destinations of 3 rows");
}

TEST(ValidateMeshTest, OperandsMayNotOverlap) {  // V10
  const auto in_place = [](CollectiveKind kind) {
    return After([&](ProgramT& p) {
      InstructionT& sum = *p.functions[0]->body[2];
      sum.operation.AsCollective()->kind = kind;
      sum.operands[1] = sum.operands[0];
    });
  };
  EXPECT_EQ(in_place(CollectiveKind::all_reduce), "");
  EXPECT_EQ(in_place(CollectiveKind::broadcast),
            "function 'main', instruction 2: broadcast: its operands overlap");
}

TEST(MeshPlaceTest, GroupsIndicesAndRows) {
  DividedProgram divided(5, 2, 3);
  divided.program.mesh->device_ids = {5, 4, 3, 2, 1, 0};
  const std::string bytes = SerializeProgram(divided.program);
  const Program& program = *GetProgram(bytes.data());
  const AxisList* over_tensor =
      program.parameters()->Get(1)->shard()->dims()->Get(0)->axes();
  EXPECT_EQ(SizeOf(program.mesh()), 6);
  EXPECT_EQ(DescribeMesh(program.mesh()), "data=2,tensor=3");
  // Rank 1 is at position 4: data 1, tensor 1.
  const MeshPlace place(program.mesh(), 1);
  EXPECT_EQ(place.Describe(), "rank 1 (data 1, tensor 1)");
  EXPECT_EQ(place.IndexAlong(over_tensor), 1);
  EXPECT_EQ(place.GroupAlong(over_tensor), (std::vector<int64_t>{2, 1, 0}));
  EXPECT_EQ(place.GroupAlong(nullptr), (std::vector<int64_t>{1}));
  const Shard& rows = *program.inputs()->Get(0)->shard();
  EXPECT_EQ(OwnedRows(rows, 0, place).begin, 3);
  EXPECT_EQ(OwnedRows(rows, 0, place).end, 5);
  // Ranks 2, 1 and 0 hold the second half; the first of them is 0.
  const std::vector<bool> all = EntriesThatHold(program, Held::kInput, 0);
  EXPECT_EQ(all, (std::vector<bool>{true}));
  EXPECT_EQ(FirstHolders(program, &rows, all), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(FirstHolders(program, nullptr, all), (std::vector<int64_t>{0}));
  EXPECT_TRUE(HoldsFirstCopy(program, &rows, all, 3));
  EXPECT_FALSE(HoldsFirstCopy(program, &rows, all, 1));
}

TEST(MeshPlaceTest, OnlySomeEntriesHold) {
  const PipelineProgram pipeline(8, 2);
  const std::string bytes = SerializeProgram(pipeline.program);
  const Program& program = *GetProgram(bytes.data());
  const auto holds = [&](Held what, int64_t index) {
    return EntriesThatHold(program, what, index);
  };
  using Flags = std::vector<bool>;
  EXPECT_EQ(holds(Held::kInput, 1), (Flags{false, true}));
  EXPECT_EQ(holds(Held::kInput, 2), (Flags{true, true}));
  EXPECT_EQ(holds(Held::kOutput, 1), (Flags{true, false}));
  EXPECT_EQ(holds(Held::kParameter, 0), (Flags{false, true}));
  EXPECT_EQ(holds(Held::kParameter, 2), (Flags{true, false}));
  // Ranks 0 and 2 run entry 0, ranks 1 and 3 entry 1.
  for (int64_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(&EntryAt(program, MeshPlace(program.mesh(), rank)),
              program.entries()->Get(static_cast<unsigned>(rank % 2)));
  using Ranks = std::vector<int64_t>;
  const Shard* rows = program.inputs()->Get(1)->shard();
  EXPECT_EQ(FirstHolders(program, rows, {false, true}), (Ranks{1, 3}));
  EXPECT_EQ(FirstHolders(program, rows, {true, true}), (Ranks{0, 2}));
  EXPECT_EQ(FirstHolders(program, nullptr, {false, true}), (Ranks{1}));
}

TEST(MeshPlaceTest, PartsAreDigits) {
  // An axis of 12 read as 3 x 2 x 2.
  DividedProgram divided(5, 1, 12);
  divided.program.parameters[3]->source.AsCoordinateSource()->axes = {
      {1, 6, 2}, {1, 1, 3}};
  const std::string bytes = SerializeProgram(divided.program);
  const Program& program = *GetProgram(bytes.data());
  const AxisList* axes =
      program.parameters()->Get(3)->source_as_CoordinateSource()->axes();
  for (int64_t rank = 0; rank < 12; ++rank) {
    const MeshPlace place(program.mesh(), rank);
    const int64_t high = rank / 4, middle = rank / 2 % 2, low = rank % 2;
    EXPECT_EQ(place.IndexAlong(axes), low * 3 + high);
    std::vector<int64_t> group;
    for (int64_t l = 0; l < 2; ++l)
      for (int64_t h = 0; h < 3; ++h) group.push_back(h * 4 + middle * 2 + l);
    EXPECT_EQ(place.GroupAlong(axes), group);
  }
}

}  // namespace
}  // namespace partita::program
