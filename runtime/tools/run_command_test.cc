// partita-run as its users see it, on a small program.
#include "runtime/tools/run_command.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/base/mapped_file.h"
#include "runtime/base/npy.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"

namespace partita::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunCommandTest : public ::testing::Test {
 protected:
  RunCommandTest() {
    folder_ = ::testing::TempDir() + "/run_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    model_ = folder_ + "/model.partita";
    EXPECT_TRUE(
        program::WriteArtifact(model_, program::SampleProgram().Parts()).ok());
  }
  ~RunCommandTest() override { std::filesystem::remove_all(folder_); }

  int Run(std::vector<std::string> arguments) {
    out_.str("");
    error_.str("");
    return RunCommand(arguments, out_, error_);
  }
  std::string WriteArray(const std::string& name, base::DType dtype,
                         const std::vector<int64_t>& shape) {
    const std::string path = folder_ + "/" + name;
    const std::vector<double> zeros(
        static_cast<size_t>(*base::ElementCount(shape)), 0);
    EXPECT_TRUE(base::WriteNpy(path, dtype, shape, zeros.data()).ok());
    return path;
  }

  std::string folder_, model_;
  std::ostringstream out_, error_;
};

TEST_F(RunCommandTest, TablesForPeople) {
  ASSERT_EQ(Run({model_, "--random-inputs", "1", "--threads", "1"}), 0)
      << error_.str();
  EXPECT_THAT(out_.str(), HasSubstr("output  type"));
  EXPECT_THAT(out_.str(), HasSubstr("y       f32[4,8]"));
  EXPECT_THAT(out_.str(), HasSubstr("0 1 2 3 4 5\n"));
  EXPECT_THAT(out_.str(), HasSubstr("over 1 run (6 steps each)"));
  EXPECT_THAT(out_.str(), HasSubstr("on cpu: arena"));
  EXPECT_EQ(error_.str(), "");
}

TEST_F(RunCommandTest, ModelsForTheCpuShareNoGpu) {
  const std::string divided = folder_ + "/divided.partita";
  ASSERT_TRUE(
      program::WriteArtifact(divided, program::DividedProgram(4, 2, 1).Parts())
          .ok());
  for (const std::string& model : {model_, divided}) {
    EXPECT_EQ(Run({model, "--random-inputs", "1", "--share-gpu"}), 1);
    EXPECT_EQ(error_.str(),
              "partita-run: --share-gpu: expected a model for GPUs, found " +
                  model +
                  ", which was compiled for the CPU; leave it out, or compile "
                  "with --target cuda:sm_80, or what architecture the GPU "
                  "has\n");
  }
}

TEST_F(RunCommandTest, JsonForPrograms) {
  ASSERT_EQ(Run({model_, "--random-inputs", "1", "--repeat", "3", "--json",
                 "--profile"}),
            0)
      << error_.str();
  const nlohmann::json json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["times_ms"].size(), 3u);
  EXPECT_GT(json["median_ms"], 0);
  EXPECT_LE(json["min_ms"], json["median_ms"]);
  EXPECT_GE(json["cpu_ms"], 0);
  EXPECT_EQ(json["memory"]["arena"], 256);
  EXPECT_EQ(json["outputs"][2]["name"], "k");
  EXPECT_EQ(json["outputs"][2]["dtype"], "i64");
  EXPECT_EQ(json["outputs"][2]["max"], 7);
  EXPECT_EQ(json["outputs"][2]["mean"], 3.5);
  EXPECT_EQ(json["outputs"][1]["shape"], (std::vector<int>{1, 4, 8, 8}));
  EXPECT_FALSE(json["profile"].empty());
}

TEST_F(RunCommandTest, OutputsAreFiles) {
  ASSERT_EQ(
      Run({model_, "--random-inputs", "1", "--output-dir", folder_ + "/a/b"}),
      0)
      << error_.str();
  const base::MappedFile file =
      std::move(base::MappedFile::Open(folder_ + "/a/b/k.npy")).value();
  const base::NpyArray array = base::ParseNpy(file.bytes(), "k").value();
  EXPECT_EQ(array.dtype, base::DType::kI64);
  EXPECT_EQ(base::ElementAsDouble(array.dtype, array.data.data(), 7), 7);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/a/b/z.npy"));
}

TEST_F(RunCommandTest, SeedsDecide) {
  const auto first = [&](const char* seed) {
    EXPECT_EQ(Run({model_, "--random-inputs", seed, "--json"}), 0);
    return nlohmann::json::parse(out_.str())["outputs"][1]["first"];
  };
  EXPECT_EQ(first("1"), first("1"));
  EXPECT_NE(first("1"), first("2"));
}

TEST_F(RunCommandTest, InputsFromFilesAndPatterns) {
  const std::string x = WriteArray("x.npy", base::DType::kF32, {4, 8});
  ASSERT_EQ(
      Run({model_, "--input", "x=" + x, "--input", "image=zeros", "--json"}), 0)
      << error_.str();
  // A convolution of zeros without bias is zero.
  EXPECT_EQ(nlohmann::json::parse(out_.str())["outputs"][1]["max"], 0);
  ASSERT_EQ(Run({model_, "--input", "x=random:2:3", "--input", "image=arange",
                 "--json"}),
            0)
      << error_.str();
  EXPECT_GT(nlohmann::json::parse(out_.str())["outputs"][1]["max"], 0);
  EXPECT_EQ(Run({model_, "--input", "x=random:3:2", "--input", "image=ones"}),
            1);
  EXPECT_THAT(error_.str(),
              HasSubstr("input 'x': expected random:LOW:HIGH with LOW below "
                        "HIGH, found 'random:3:2'"));
}

TEST_F(RunCommandTest, InputsFromSafetensors) {
  const std::string header =
      R"({"in.x":{"dtype":"F32","shape":[4,8],"data_offsets":[0,128]},"image":{"dtype":"F32","shape":[1,4,8,8],"data_offsets":[128,1152]}})";
  uint64_t size = header.size();
  const std::string path = folder_ + "/io.safetensors";
  std::ofstream(path, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&size), 8) << header
      << std::string(1152, '\0');
  ASSERT_EQ(Run({model_, "--inputs", path, "--json"}), 0) << error_.str();
  EXPECT_EQ(nlohmann::json::parse(out_.str())["outputs"][1]["max"], 0);
}

TEST_F(RunCommandTest, MissingInputsAreListed) {
  EXPECT_EQ(Run({model_}), 1);
  EXPECT_EQ(
      error_.str(),
      "partita-run: no content for input 'x', 'image'; the model's inputs are\n"
      "  x  f32[4,8]\n"
      "  image  f32[1,4,8,8]\n"
      "for example: --input x=x.npy\n"
      "or, for a trial: --random-inputs 1\n");
  EXPECT_EQ(Run({model_, "--input", "nothing=zeros"}), 1);
  EXPECT_THAT(error_.str(), HasSubstr("there is no input 'nothing'; the "
                                      "model's inputs are\n  x  f32[4,8]"));
}

TEST_F(RunCommandTest, IntegersAreNotMadeUp) {
  program::SampleProgram sample;
  sample.program.inputs.push_back(
      program::MakePort("ids", program::DType::i64, {2}));
  sample.program.entries[0]->inputs.push_back(2);
  sample.program.functions[2] = program::MakeFunction("main", 10, 3, 256);
  ASSERT_TRUE(program::WriteArtifact(model_, sample.Parts()).ok());
  EXPECT_EQ(Run({model_, "--random-inputs", "1"}), 1);
  EXPECT_THAT(error_.str(), HasSubstr("no content for input 'ids'"));
  EXPECT_THAT(
      error_.str(),
      HasSubstr("or, for a trial: --input ids=random:0:100 --random-inputs 1"));
  EXPECT_EQ(
      Run({model_, "--random-inputs", "1", "--input", "ids=random:0:100"}), 0)
      << error_.str();
}

TEST_F(RunCommandTest, WrongTypesAreRefused) {
  const std::string wide = WriteArray("wide.npy", base::DType::kF64, {4, 8});
  EXPECT_EQ(Run({model_, "--input", "x=" + wide, "--random-inputs", "1"}), 1);
  EXPECT_EQ(error_.str(),
            "partita-run: input 'x': expected f32[4,8], found f64[4,8] in " +
                wide + "\n");
  EXPECT_EQ(Run({model_, "--input", "x=" + folder_ + "/absent.npy"}), 1);
  EXPECT_THAT(error_.str(), HasSubstr("absent.npy: no such file"));
}

TEST_F(RunCommandTest, ExitCodes) {
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("usage: partita-run"));
  EXPECT_EQ(Run({}), 2);
  EXPECT_THAT(error_.str(), HasSubstr("Try partita-run --help"));
  EXPECT_EQ(Run({folder_ + "/absent.partita"}), 1);
  EXPECT_EQ(error_.str(),
            "partita-run: " + folder_ + "/absent.partita: no such file\n");
  EXPECT_EQ(
      Run({model_, "--random-inputs", "1", "--output-dir", model_ + "/out"}),
      1);
  EXPECT_THAT(error_.str(), HasSubstr("cannot create the folder"));
}

TEST_F(RunCommandTest, TheNullDevicePlans) {
  ASSERT_EQ(Run({model_, "--random-inputs", "1", "--device", "null"}), 0)
      << error_.str();
  EXPECT_THAT(out_.str(), HasSubstr("on null: arena"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("not finite")));
}

TEST_F(RunCommandTest, DividedModels) {
  const std::string divided = folder_ + "/divided.partita";
  ASSERT_TRUE(
      program::WriteArtifact(divided, program::DividedProgram(5, 2, 2).Parts())
          .ok());
  ASSERT_EQ(Run({divided, "--random-inputs", "1", "--json", "--profile"}), 0)
      << error_.str();
  const nlohmann::json json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["devices"], 4);
  EXPECT_EQ(json["outputs"][0]["shape"], (std::vector<int>{5, 8}));
  EXPECT_EQ(json["outputs"][2]["first"], (std::vector<int>{0, 1, 2, 3}));
  EXPECT_THAT(json["profile"].dump(),
              HasSubstr("all_reduce sum f32[3,8] over tensor"));
  EXPECT_EQ(Run({divided, "--random-inputs", "1", "--devices", "4"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("on cpu, the fullest of 4: arena"));
  EXPECT_EQ(Run({divided, "--random-inputs", "1", "--devices", "2"}), 1);
  EXPECT_THAT(error_.str(), HasSubstr("the model was compiled for 4 devices "
                                      "(data=2,tensor=2), found --devices 2"));
  EXPECT_EQ(Run({model_, "--random-inputs", "1", "--devices", "2"}), 1);
  EXPECT_THAT(error_.str(), HasSubstr("compiled for 1 device, found "
                                      "--devices 2"));
  EXPECT_EQ(Run({divided, "--random-inputs", "1", "--device", "null"}), 0)
      << error_.str();
}

TEST_F(RunCommandTest, Pipelines) {
  const std::string pipeline = folder_ + "/pipeline.partita";
  ASSERT_TRUE(
      program::WriteArtifact(pipeline, program::PipelineProgram(8, 2).Parts())
          .ok());
  std::vector<std::string> arguments = {
      pipeline,  "--random-inputs", "1",
      "--input", "step=random:1:2", "--profile"};
  ASSERT_EQ(Run(arguments), 0) << error_.str();
  EXPECT_THAT(out_.str(), HasSubstr("pipeline rank 1: 13 steps, "));
  EXPECT_THAT(out_.str(), HasSubstr("\npipeline rank 1\nstep "));
  arguments.push_back("--json");
  ASSERT_EQ(Run(arguments), 0) << error_.str();
  const nlohmann::json json = nlohmann::json::parse(out_.str());
  ASSERT_EQ(json["ranks"].size(), 4u);
  EXPECT_EQ(json["ranks"][2]["pipeline_rank"], 0);
  EXPECT_EQ(json["ranks"][3]["pipeline_rank"], 1);
  EXPECT_EQ(json["ranks"][3]["memory"]["globals"], 5 * 7 * 4);
  int64_t most = 0;
  for (const nlohmann::json& rank : json["ranks"])
    most = std::max<int64_t>(most, rank["memory"]["total"]);
  EXPECT_EQ(json["memory"]["total"], most);
  EXPECT_EQ(json["outputs"][2]["shape"], (std::vector<int>{8, 7}));
  EXPECT_THAT(json["profile"].dump(),
              HasSubstr("receive f32[2,5] from entry 0"));
  arguments.insert(arguments.end(), {"--device", "null"});
  ASSERT_EQ(Run(arguments), 0) << error_.str();
  EXPECT_EQ(nlohmann::json::parse(out_.str())["ranks"].size(), 4u);
}

}  // namespace
}  // namespace partita::tools
