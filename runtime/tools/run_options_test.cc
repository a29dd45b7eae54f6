// Flags of partita-run and partita-run generate, and errors in command lines.
#include "runtime/tools/run_options.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/tools/generate_options.h"

namespace partita::tools {
namespace {

using ::testing::HasSubstr;

std::string Error(const std::vector<std::string>& arguments) {
  return std::string(ParseRunOptions(arguments).status().message());
}

TEST(RunOptionsTest, Defaults) {
  const RunOptions options = ParseRunOptions({"m.partita"}).value();
  EXPECT_EQ(options.model, "m.partita");
  EXPECT_EQ(options.device, "");
  EXPECT_FALSE(options.share_gpu);
  EXPECT_EQ(options.repeat, 1);
  EXPECT_FALSE(options.warmup.has_value());
  EXPECT_FALSE(options.random_seed.has_value());
  EXPECT_FALSE(options.json || options.profile || options.help);
}

TEST(RunOptionsTest, EveryFlag) {
  const RunOptions options = ParseRunOptions({"--input",
                                              "x=a.npy",
                                              "m.partita",
                                              "--input=y=b=c.npy",
                                              "--inputs",
                                              "in.safetensors",
                                              "--output-dir=out",
                                              "--random-inputs",
                                              "7",
                                              "--threads=3",
                                              "--warmup",
                                              "0",
                                              "--devices",
                                              "4",
                                              "--timeout=2.5",
                                              "--repeat=5",
                                              "--json",
                                              "--share-gpu",
                                              "--profile",
                                              "--limits=f32=2e11,memory=3e10",
                                              "--weights-dir",
                                              "w",
                                              "--device",
                                              "null"})
                                 .value();
  ASSERT_EQ(options.inputs.size(), 2u);
  EXPECT_EQ(options.inputs[0].first, "x");
  EXPECT_EQ(options.inputs[1].second, "b=c.npy");
  EXPECT_EQ(options.inputs_file, "in.safetensors");
  EXPECT_EQ(options.output_dir, "out");
  EXPECT_EQ(options.random_seed, 7u);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.devices, 4);
  EXPECT_EQ(options.timeout, 2.5);
  EXPECT_EQ(options.warmup, 0);
  EXPECT_EQ(options.repeat, 5);
  EXPECT_TRUE(options.json);
  EXPECT_TRUE(options.share_gpu);
  EXPECT_TRUE(options.profile);
  EXPECT_EQ(options.limits->flops.at("f32"), 2e11);
  EXPECT_EQ(options.limits->memory, 3e10);
  EXPECT_EQ(options.weights_dir, "w");
  EXPECT_EQ(options.device, "null");
}

TEST(RunOptionsTest, Mistakes) {
  EXPECT_EQ(Error({}), "expected a model, found none");
  EXPECT_EQ(Error({"a", "b"}), "expected one model, found 'a' and 'b'");
  EXPECT_EQ(Error({"m", "--fast"}), "unknown option '--fast'");
  EXPECT_EQ(Error({"m", "--json=yes"}), "unknown option '--json=yes'");
  EXPECT_EQ(Error({"m", "--timeout", "0"}),
            "--timeout: expected seconds, 0.001 to 1000000, found '0'");
  EXPECT_EQ(Error({"m", "--devices", "0"}),
            "--devices: expected a whole number of at least 1, found '0'");
  EXPECT_EQ(Error({"m", "--limits", "f32=fast"}),
            "--limits: expected TYPE=FLOP/S or memory=BYTES/S with positive "
            "numbers, as in f32=1.2e11,memory=2e10, found 'f32=fast'");
  EXPECT_EQ(Error({"m", "--threads"}),
            "--threads: expected a value, found nothing");
  EXPECT_EQ(Error({"m", "--threads", "99999"}),
            "--threads: expected a whole number of at least 1 and at most "
            "4096, found '99999'");
  EXPECT_EQ(Error({"m", "--repeat=many"}),
            "--repeat: expected a whole number of at least 1, found 'many'");
  EXPECT_EQ(Error({"m", "--input", "x"}),
            "--input: expected NAME=FILE.npy, found 'x'");
  EXPECT_EQ(Error({"m", "--input", "=x"}),
            "--input: expected NAME=FILE.npy, found '=x'");
  EXPECT_EQ(Error({"m", "--input", "x=a.npy", "--input=x=b.npy"}),
            "--input: expected one file for input 'x', found 'a.npy' and "
            "'b.npy'; leave out one of the two");
  EXPECT_EQ(Error({"m", "--output-dir="}),
            "--output-dir: expected a value, found nothing");
  EXPECT_EQ(Error({"m", "--random-inputs", "-1"}),
            "--random-inputs: expected a whole number, found '-1'");
  EXPECT_EQ(Error({"m", "--device=tpu"}),
            "--device: expected cpu, cuda or null, found 'tpu'");
  EXPECT_EQ(Error({"m", "--share-gpu", "--device=cpu"}),
            "--share-gpu: expected devices that are GPUs, found --device cpu; "
            "leave out one of the two");
}

TEST(RunOptionsTest, HelpNamesEveryFlag) {
  EXPECT_TRUE(ParseRunOptions({"--help"})->help);
  for (const char* flag :
       {"--input ", "--inputs", "--output-dir", "--random-inputs", "--threads",
        "--warmup", "--repeat", "--json", "--profile", "--limits",
        "--weights-dir", "--device ", "--share-gpu", "--help"}) {
    EXPECT_THAT(RunHelp(), HasSubstr(flag));
  }
  EXPECT_THAT(RunHelp(), HasSubstr("To check a divided model"));
  EXPECT_THAT(
      RunHelp(),
      HasSubstr("\n  --device cpu|cuda|null   Run on this kind of device; "
                "default: the target that the model was compiled for.\n"
                "                           null executes nothing: it only "
                "plans memory and counts steps\n  --share-gpu"));
}

// Parses a command line of partita-run generate.
std::string GenerateError(const std::vector<std::string>& arguments) {
  return std::string(ParseGenerateOptions(arguments).status().message());
}

TEST(GenerateOptionsTest, PromptsMayBeMissingInADryRun) {
  EXPECT_THAT(GenerateError({"m"}), HasSubstr("expected a prompt"));
  EXPECT_EQ(GenerateError({"m", "--dry-run"}), "");
  EXPECT_THAT(GenerateError({"m", "--dry-run", "--temperature", "abc"}),
              HasSubstr("--temperature"));
}

TEST(GenerateOptionsTest, TheBestTokenIsNotDrawn) {
  EXPECT_THAT(
      GenerateError({"m", "--ids=1", "--top-p=.5", "--temperature=0"}),
      HasSubstr("expected a --temperature above 0 with --top-k or --top-p"));
  EXPECT_EQ(GenerateError({"m", "--ids=1", "--top-p=.5"}), "");
}

TEST(GenerateOptionsTest, FilesOfPromptsEndWithBlankLines) {
  const std::string path = ::testing::TempDir() + "/prompts.txt";
  const auto error = [&](const std::string& text) {
    std::ofstream(path) << text;
    return GenerateError({"m", "--prompts", path});
  };
  EXPECT_EQ(error("a\r\nb\n\n\r\n"), "");
  EXPECT_THAT(error("a\n\nb"), HasSubstr("prompts.txt:2: expected a prompt"));
  EXPECT_THAT(error("\n"), HasSubstr("found no prompt"));
  std::ofstream(path) << "a\nb\n\n";
  const auto options =
      ParseGenerateOptions({"m", "--ids=1", "--prompts", path, "--ids=2"});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->prompts.size(), 4u);
  EXPECT_EQ(options->prompts[2].text, "b");
}

}  // namespace
}  // namespace partita::tools
