#include "compiler/planner/published/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "compiler/planner/published/frameworks.h"

namespace partita::planner {
namespace {

using core::Precision;
using ::testing::HasSubstr;

const char kHeader[] =
    "model_family,layers,hidden,heads,kv_heads,ffn,seq_len,vocab,n_gpus,gpu,"
    "gpus_per_node,inter_node,tp,pp,dp,cp,ep,vpp,sp,recompute,zero_stage,mbs,"
    "gbs,precision,framework\n";
const char kRow[] =
    "GPT,80,12288,96,,49152,2048,51200,1536,A100-80GB-SXM,8,\"8x HDR IB 200 "
    "Gbps per node, 3-level fat tree (Selene)\",8,8,24,1,,,n,full,0,1,2304,"
    "fp16 mixed,Megatron-LM\n";

std::vector<SweepRow> Rows(const std::string& text) {
  absl::StatusOr<std::vector<CsvRow>> table = ReadCsv(text, "rows.csv");
  EXPECT_TRUE(table.ok()) << table.status();
  absl::StatusOr<std::vector<SweepRow>> rows =
      ReadSweep(*table, "rows.csv", std::nullopt);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return *rows;
}

std::string Refusal(const std::string& text) {
  absl::StatusOr<SweepResult> result = RunSweep(text, "rows.csv", std::nullopt);
  return result.ok() ? "accepted" : std::string(result.status().message());
}

TEST(Csv, KeepsWhatQuotesHold) {
  const std::string text = "a,\"b,\"\"c\"\"\",\"d\ne\"\r\n\n1,,3\n";
  absl::StatusOr<std::vector<CsvRow>> rows = ReadCsv(text, "t.csv");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].cells,
            (std::vector<std::string>{"a", "b,\"c\"", "d\ne"}));
  EXPECT_EQ((*rows)[1].line, 4);
  EXPECT_EQ(WriteCsvRow((*rows)[0].cells), "a,\"b,\"\"c\"\"\",\"d\ne\"\n");
  EXPECT_EQ(ReadCsv("a,b\n1\n", "t.csv").status().message(),
            "t.csv:2: expected 2 cells as in the first row, found 1");
  EXPECT_EQ(ReadCsv("a\n\"b\n", "t.csv").status().message(),
            "t.csv:2: expected a closing quote, found the end");
  EXPECT_EQ(ReadCsv("\"a\"b\n", "t.csv").status().message(),
            "t.csv:1: expected a comma after a closing quote");
}

TEST(Sweep, SaysWhichRowsHaveAnotherGpu) {
  const std::string table =
      "layers,hidden,heads,seq_len,gbs,gpu\n"
      "2,64,2,8,4,A100-80GB-SXM\n2,64,2,8,4,H100\n2,64,2,8,4,\n"
      "2,64,2,8,4,B9\n";
  absl::StatusOr<SweepResult> own = RunSweep(table, "rows.csv", std::nullopt);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->other_gpus.rows, 0);
  absl::StatusOr<SweepResult> given =
      RunSweep(table, "rows.csv", *BuiltInCluster("8x a100-80-sxm"));
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->predicted, 4);
  EXPECT_EQ(given->other_gpus.rows, 2);
  EXPECT_EQ(given->other_gpus.first, "H100");
}

TEST(Sweep, ReadsAPublishedRow) {
  const SweepRow row = Rows(std::string(kHeader) + kRow)[0];
  EXPECT_EQ(row.architecture.kind, ModelKind::kGpt);
  EXPECT_EQ(row.architecture.kv_heads, 96);
  EXPECT_EQ(row.division.devices, 1536);
  EXPECT_EQ(row.division.microbatches(), 96);
  EXPECT_EQ(row.division.precision, Precision::kF16);
  EXPECT_EQ(row.division.recompute, Recomputation::kFull);
  EXPECT_EQ(row.cluster.device.name, "a100-80-sxm");
  EXPECT_EQ(row.cluster.devices, 1536);
  EXPECT_DOUBLE_EQ(row.cluster.levels[1].bandwidth, 25e9);
  EXPECT_EQ(row.software->name, "megatron-lm");
  EXPECT_EQ(row.problem, "");
  EXPECT_THAT(row.defaults,
              ::testing::ElementsAre("ep=1", "vpp=1", "gpu=a100-80-sxm"));
}

TEST(Sweep, ReadsNetworksInManyWords) {
  const auto bandwidth = [](const std::string& words) {
    const SweepRow row = Rows(
        "layers,hidden,heads,seq_len,gbs,n_gpus,inter_node\n"
        "2,64,2,32,16,16," +
        words + "\n")[0];
    return row.cluster.levels[1].bandwidth;
  };
  EXPECT_DOUBLE_EQ(bandwidth("8x NDR400 (DGX H100)"), 50e9);
  EXPECT_DOUBLE_EQ(bandwidth("RoCE 1600 Gbps per node"), 25e9);
  EXPECT_DOUBLE_EQ(
      bandwidth("800 Gbps per node (config inter_node_bandwidth=800)"), 12.5e9);
  EXPECT_DOUBLE_EQ(bandwidth("RDMA 400 Gbps/GPU (Grand Teton)"), 50e9);
  EXPECT_DOUBLE_EQ(bandwidth(""), 25e9);
}

TEST(Sweep, SaysHowLongAT5sDecoderIs) {
  const SweepRow row = Rows(
      "model_family,layers,hidden,heads,seq_len,gbs\nT5,24+24,64,2,512,16\n")
      [0];
  EXPECT_EQ(row.architecture.decoder_seq, 128);
  EXPECT_THAT(row.defaults, ::testing::Contains("decoder_seq=128"));
}

// Otherwise such rows would be predicted as a model without experts.
TEST(Sweep, RefusesExpertsOfSomeLayers) {
  const auto problem = [](const std::string& columns,
                          const std::string& cells) {
    return Rows("layers,hidden,heads,seq_len,gbs," + columns +
                "\n8,64,2,32,16," + cells + "\n")[0]
        .problem;
  };
  EXPECT_THAT(problem("num_experts", "16"), HasSubstr("expected moe_experts"));
  EXPECT_EQ(problem("num_experts", ""), "");
  EXPECT_EQ(problem("num_experts,moe_experts", "16,16"), "");
}

TEST(Sweep, SaysWhichDeviceItTook) {
  const auto row = [](const std::string& gpu) {
    return Rows("layers,hidden,heads,seq_len,gbs,gpu\n2,64,2,32,16," + gpu +
                "\n")[0];
  };
  EXPECT_THAT(row("H100-PCIe").defaults, ::testing::Contains("gpu=h100-sxm"));
  EXPECT_THAT(row("a100-80-sxm").defaults,
              ::testing::Not(::testing::Contains(HasSubstr("gpu="))));
  EXPECT_THAT(row("A1000").problem, HasSubstr("found 'A1000'"));
}

// Spreadsheets begin UTF-8 files with such a mark.
TEST(Sweep, SkipsAByteOrderMark) {
  EXPECT_EQ(Rows("\xef\xbb\xbflayers,hidden,heads,seq_len,gbs\n2,64,2,32,16\n")
                .size(),
            1u);
}

TEST(Sweep, AddsColumnsAndSaysDefaults) {
  absl::StatusOr<SweepResult> result = RunSweep(
      "model,layers,hidden,heads,seq_len,gbs,n_gpus,tp\n"
      "small,24,1024,16,1024,64,8,2\nodd,24,1024,16,1024,64,8,3\n",
      "rows.csv", std::nullopt);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows, 2);
  EXPECT_EQ(result->predicted, 1);
  absl::StatusOr<std::vector<CsvRow>> table = ReadCsv(result->csv, "out.csv");
  ASSERT_TRUE(table.ok());
  const std::vector<std::string>& cells = (*table)[1].cells;
  EXPECT_EQ((*table)[0].cells[8], "predicted_iter_time_s");
  EXPECT_GT(std::stod(cells[8]), 0.01);
  EXPECT_EQ(cells[10], cells[9]);  // the first rank is also the last
  EXPECT_EQ(cells[11], "y");
  EXPECT_THAT(cells[16], HasSubstr("dp=4"));
  EXPECT_THAT(cells[16], HasSubstr("gpu=a100-80-sxm"));
  EXPECT_THAT(cells[16], HasSubstr("mbs="));
  EXPECT_EQ((*table)[2].cells[8], "");
  EXPECT_THAT((*table)[2].cells[17], HasSubstr("are not the 8 devices"));
}

TEST(Sweep, SaysWhichColumnsWereMeantForOthers) {
  const auto hints = [](const std::string& header, const std::string& row) {
    absl::StatusOr<SweepResult> result =
        RunSweep(header + "\n" + row + "\n", "rows.csv", std::nullopt);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->hints : std::vector<std::string>();
  };
  const std::string sizes = "layers,hidden,heads,seq_len,gbs,";
  EXPECT_THAT(hints(sizes + "kv_head,source", "2,64,2,32,16,1,me"),
              ::testing::ElementsAre("column 'kv_head' is not read; did you "
                                     "mean 'kv_heads'?"));
  // No hint is given if the column with the known name is present.
  EXPECT_THAT(hints(sizes + "kv_heads,kv_head", "2,64,2,32,16,1,1"),
              ::testing::IsEmpty());
}

TEST(Sweep, KnowsFrameworksInAnyCase) {
  const auto row = [](const std::string& framework) {
    return Rows("layers,hidden,heads,seq_len,gbs,framework\n2,64,2,32,16," +
                framework + "\n")[0];
  };
  EXPECT_EQ(row("megatron-lm").software->name, "megatron-lm");
  EXPECT_EQ(row("NEMO 24.05").software->name, "megatron-core");
  EXPECT_EQ(row("Partita").software, &SoftwareOf(""));
  EXPECT_EQ(row("NeMo Megatron-Core").software->name, "megatron-core");
  EXPECT_EQ(row("NeMo Megatron 22.09").software->name, "nemo megatron");
  EXPECT_EQ(row("torchtitan FSDP2").software->name, "torchtitan, eager");
  EXPECT_EQ(row("torchtitan with compile").software->name, "torchtitan");
  EXPECT_EQ(row("Alpa parax.auto").software->name, "alpa");
  EXPECT_EQ(row("DeepSpeed 3D").software->name, "megatron-deepspeed");
  EXPECT_EQ(row("").other_framework, "");
  EXPECT_EQ(row("MaxText").other_framework, "MaxText");
  EXPECT_EQ(row("MaxText").software->name, "megatron-core");
  EXPECT_THAT(row("MaxText").defaults,
              ::testing::Contains("framework=megatron-core"));
}

TEST(Sweep, ReadsWhatTablesOfOthersSay) {
  const auto row = [](const std::string& column, const std::string& cell) {
    const SweepRow read =
        Rows("layers,hidden,heads,seq_len,gbs,n_gpus," + column +
             "\n2,64,2,32,512,128," + cell + "\n")[0];
    EXPECT_EQ(read.problem, "") << cell;
    return read;
  };
  EXPECT_EQ(row("precision", "float8").division.precision, Precision::kF8);
  EXPECT_EQ(row("precision", "bfloat16").division.precision, Precision::kBF16);
  EXPECT_EQ(row("precision", "float16").division.precision, Precision::kF16);
  EXPECT_EQ(row("zero_stage", "FSDP").division.zero, 3);
  EXPECT_EQ(row("recompute", "no").division.recompute, Recomputation::kNone);
  const auto cluster = [&](const std::string& gpu, const std::string& network) {
    return row("gpu,inter_node", gpu + "," + network).cluster;
  };
  const Cluster grand_teton = cluster("H100-SXM-96GB-HBM2e (Meta Grand Teton)",
                                      "RoCE 400 Gb/s per GPU");
  EXPECT_EQ(grand_teton.device.name, "h100-96-sxm");
  EXPECT_EQ(grand_teton.levels.back().bandwidth, 50e9);
  EXPECT_EQ(cluster("V100-SXM2-16GB", "").device.name, "v100-16-sxm2");
  EXPECT_EQ(cluster("V100-SXM2-32GB 16 GPUs", "").device.name, "v100-32-sxm2");
  EXPECT_EQ(cluster("DGX A100 640GB", "").device.name, "a100-80-sxm");
  EXPECT_EQ(cluster("A100-40GB", "").device.name, "a100-40-sxm");
  const Level omni_path =
      cluster("A100-80GB-SXM", "4x Omni-Path 100G").levels.back();
  EXPECT_EQ(omni_path.bandwidth, 6.25e9);
  EXPECT_EQ(omni_path.efficiency, 0.21);
  EXPECT_EQ(cluster("GB200", "").levels.size(), 3u);
  EXPECT_EQ(cluster("GH200-96GB", "").device.name, "gh200");
}

TEST(Sweep, LeavesTheEndsOfAPipelineWithoutLayers) {
  const auto row = [](const std::string& layers, const std::string& software) {
    return Rows("layers,hidden,heads,seq_len,gbs,n_gpus,pp,vpp,framework\n" +
                layers + ",64,2,32,16,4,4,2," + software + "\n")[0];
  };
  SweepRow six = row("6", "Megatron-Core");
  EXPECT_EQ(six.division.cut, std::vector<int64_t>({0, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_TRUE(Predict(six).ok());
  EXPECT_EQ(row("7", "Megatron-Core").division.cut.front(), 1);
  SweepRow five = row("5", "Megatron-Core"), own = row("6", "partita");
  EXPECT_FALSE(Predict(five).ok());
  EXPECT_FALSE(Predict(own).ok());
}

// torchtitan does not compile by default. Both fp8 and asynchronous tensor
// parallelism need torch.compile.
TEST(Sweep, ReadsHowTorchtitanRan) {
  const auto name = [](const std::string& notes, const std::string& precision) {
    return Rows(
               "layers,hidden,heads,seq_len,gbs,framework,notes,precision\n"
               "2,64,2,32,16,torchtitan," +
               notes + "," + precision + "\n")[0]
        .software->name;
  };
  EXPECT_EQ(name("eager", "bf16"), "torchtitan, eager");
  EXPECT_EQ(name("torch.compile", "bf16"), "torchtitan");
  EXPECT_EQ(name("AsyncTP", "bf16"), "torchtitan");
  EXPECT_EQ(name("", "float8"), "torchtitan");
}

TEST(Sweep, KnowsThatLaunchesBlockOnJeanZay) {
  const auto name = [](const std::string& network,
                       const std::string& precision) {
    return Rows(
               "layers,hidden,heads,seq_len,gbs,framework,inter_node,precision"
               "\n2,64,2,32,16,Megatron-DeepSpeed," +
               network + "," + precision + "\n")[0]
        .software->name;
  };
  EXPECT_EQ(name("4x Omni-Path 100 Gbps per node (Jean Zay)", "bf16"),
            "megatron-deepspeed, blocking launches");
  EXPECT_EQ(name("4x Omni-Path 100 Gbps per node (Jean Zay)",
                 "bf16 (fp32 grad accumulation)"),
            "megatron-deepspeed, f32 gradients, blocking launches");
  EXPECT_EQ(name("8x HDR 200 Gbps", "bf16"), "megatron-deepspeed");
}

// By default, torchtitan has as many microbatches as stages, and two stages per
// rank in interleaved schedules.
TEST(Sweep, TakesTorchtitansMicrobatchesAndStages) {
  const auto row = [](const std::string& schedule, const std::string& mbs) {
    return Rows(
        "layers,hidden,heads,seq_len,gbs,n_gpus,pp,framework,schedule,mbs\n"
        "16,64,2,32,64,8,4,torchtitan," +
        schedule + "," + mbs + "\n")[0];
  };
  EXPECT_EQ(row("1F1B", "").division.microbatch, 8);
  EXPECT_EQ(row("1F1B", "").division.vpp, 1);
  EXPECT_EQ(row("Interleaved 1F1B", "2").division.microbatch, 2);
  EXPECT_EQ(row("Interleaved 1F1B", "").division.vpp, 2);
  EXPECT_THAT(row("1F1B", "").defaults, ::testing::Contains("mbs=8"));
  EXPECT_FALSE(row("1F1B", "").choose_microbatch);
}

TEST(Sweep, FillsStagesAsDeepSpeedDoes) {
  const auto cut = [](const std::string& layers, const std::string& software) {
    return Rows("layers,hidden,heads,seq_len,gbs,n_gpus,pp,framework\n" +
                layers + ",64,2,32,16,4,4," + software + "\n")[0]
        .division.cut;
  };
  using Layers = std::vector<int64_t>;
  EXPECT_EQ(cut("16", "DeepSpeed"), Layers());
  EXPECT_EQ(cut("14", "DeepSpeed"), Layers({3, 4, 4, 3}));
  EXPECT_EQ(cut("15", "DeepSpeed"), Layers({4, 4, 4, 3}));
  EXPECT_EQ(cut("17", "DeepSpeed"), Layers({5, 5, 5, 2}));
  EXPECT_EQ(cut("14", "Megatron-LM"), Layers());
}

// NeMo packs samples of fine-tuning, so attention spans a sample.
TEST(Sweep, PacksSamplesOfFineTuning) {
  const auto row = [](const std::string& software, const std::string& task) {
    return Rows(
        "layers,hidden,heads,seq_len,gbs,framework,task\n"
        "2,256,2,4096,16," +
        software + "," + task + "\n")[0];
  };
  EXPECT_EQ(row("NeMo/Megatron-Core", "pretrain").architecture.packed, 0);
  EXPECT_GT(row("NeMo/Megatron-Core", "SFT").architecture.packed, 0);
  EXPECT_GT(row("NeMo/Megatron-Core", "LoRA").architecture.packed, 0);
  EXPECT_EQ(row("Megatron-LM", "SFT").architecture.packed, 0);
  SweepRow packed = row("NeMo/Megatron-Core", "SFT");
  SweepRow whole = row("NeMo/Megatron-Core", "pretrain");
  EXPECT_LT(Predict(packed)->attention, 0.5 * Predict(whole)->attention);
}

TEST(Sweep, SaysWhatTheFirstRowOfAKindLacks) {
  absl::StatusOr<SweepResult> result = RunSweep(
      "layers,hidden,heads,seq_len,gbs,n_gpus,tp\n24,1024,16,1024,64,8,3\n"
      "24,1024,16,1024,64,8,5\n",
      "rows.csv", std::nullopt);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->problems.size(), 1u);
  EXPECT_EQ(result->problems.begin()->second.rows, 2);
  EXPECT_THAT(result->problems.begin()->second.first,
              HasSubstr("are not the 8 devices"));
}

TEST(Sweep, RefusesWithTheLine) {
  const std::string header = "layers,hidden,heads,seq_len,gbs\n";
  EXPECT_EQ(Refusal(""),
            "rows.csv: expected a row of columns' names, found "
            "nothing");
  EXPECT_THAT(Refusal("layers,heads\n1,2\n"),
              HasSubstr("rows.csv:1: expected a column 'hidden'"));
  EXPECT_EQ(Refusal(header),
            "rows.csv: expected rows below the columns' names, found none");
  EXPECT_THAT(Refusal("layers;heads\n1;2\n"),
              HasSubstr("cells are separated by commas"));
  EXPECT_EQ(Refusal("layers,layers\n1,2\n"),
            "rows.csv:1: column 'layers' is there twice");
  EXPECT_EQ(Refusal("layers,hidden,heads,seq_len,gbs,fits\n1,1,1,1,1,y\n"),
            "rows.csv:1: column 'fits' is added to the output: rename it");
}

TEST(Sweep, KeepsTheOtherRowsWhereOneCannotBeRead) {
  const std::string header = "layers,hidden,heads,seq_len,gbs,";
  const auto problem = [&](const std::string& column, const std::string& cell) {
    const std::vector<SweepRow> rows =
        Rows(header + column + "\n24,1024,16,1024,8," + cell +
             "\n24,1024,16,1024,8,\n");
    EXPECT_EQ(rows[0].line, 2);
    EXPECT_EQ(rows[1].problem, "");
    return rows[0].problem;
  };
  EXPECT_EQ(problem("ffn", "10e3"),
            "ffn: expected a whole number of 1 to 4294967296, found '10e3'");
  EXPECT_EQ(problem("precision", "int8"),
            "precision: expected f32, bf16, fp16 or fp8, found 'int8'");
  EXPECT_EQ(problem("zero_stage", "4"),
            "zero_stage: expected 0 to 3, found '4'");
  EXPECT_EQ(problem("sp", "x"), "sp: expected y or n, found 'x'");
  EXPECT_EQ(problem("tp", "16777217"),
            "tp: expected at most 16777216, found '16777217'");
  absl::StatusOr<SweepResult> result =
      RunSweep(header + "tp\n24,1024,16,1024,8,1\n24,1024,16,1024,8,two\n",
               "rows.csv", std::nullopt);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->predicted, 1);
  ASSERT_EQ(result->problems.count("tp"), 1u);
  EXPECT_EQ(result->problems.at("tp").line, 3);
}

// Spreadsheets write columns with an empty cell in this way.
TEST(Sweep, ReadsWholeNumbersWithAFraction) {
  const SweepRow row = Rows(
      "layers,hidden,heads,seq_len,gbs,tp,moe_experts,sp\n"
      "24.0,1024,16.00,1024,80.0,2.0,0.0,True\n")[0];
  EXPECT_EQ(row.problem, "");
  EXPECT_EQ(row.architecture.layers, 24);
  EXPECT_EQ(row.architecture.heads, 16);
  EXPECT_EQ(row.architecture.experts, 0);
  EXPECT_EQ(row.division.batch, 80);
  EXPECT_EQ(row.division.tp, 2);
  EXPECT_TRUE(row.division.sequence_parallel);
  EXPECT_THAT(
      Rows("layers,hidden,heads,seq_len,gbs\n2,64.5,2,32,16\n")[0].problem,
      HasSubstr("hidden: expected a whole number"));
}

TEST(Sweep, PredictsThousandsOfRowsAMinute) {
  std::string text = kHeader;
  constexpr int kRows = 300;
  for (int i = 0; i < kRows; ++i) text += kRow;
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<SweepResult> result = RunSweep(text, "rows.csv", std::nullopt);
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->predicted, kRows);
  EXPECT_GT(kRows / taken.count() * 60, 3000);
}

}  // namespace
}  // namespace partita::planner
