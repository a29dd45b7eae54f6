// partita quantize: writes a model again with weights of 8 or 4 bits.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/calibrate.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/quantize/fake_quantize.h"
#include "compiler/quantize/quantize.h"
#include "compiler/quantize/recorded_ranges.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

struct QuantizeCommand {
  ModelArguments model;
  quantize::Options options;
  std::string output, calibration, range = "minmax";
  int bits = 8;
  std::string format = "integer";
  quantize::GroupOptions groups;
  bool json = false;
};

llvm::json::Value factsOf(const quantize::Report& report,
                          const std::string& folder) {
  llvm::json::Array layers;
  for (const quantize::LayerReport& layer : report.layers) {
    llvm::json::Object row{{"weight", layer.weight},
                           {"shape", llvm::json::Array(layer.shape)},
                           {"bytes_before", layer.bytes_before},
                           {"bytes_after", layer.bytes_after}};
    if (layer.kept.empty()) {
      row["relative_error"] = layer.relative_error;
      // JSON has no infinity: null without an error.
      row["decibels"] = std::isfinite(layer.decibels)
                            ? llvm::json::Value(layer.decibels)
                            : llvm::json::Value(nullptr);
    } else {
      row["kept"] = layer.kept;
    }
    if (layer.input) {
      row["input_low"] = layer.input->low;
      row["input_high"] = layer.input->high;
      row["keeps_input"] = layer.keeps_input;
      if (std::isfinite(layer.input_decibels))
        row["input_decibels"] = layer.input_decibels;
    }
    layers.push_back(std::move(row));
  }
  return llvm::json::Object{{"folder", folder},
                            {"bytes_before", report.bytes_before},
                            {"bytes_after", report.bytes_after},
                            {"layers", std::move(layers)}};
}

// The ratio of signal to noise of a weight's input. Empty for a range that
// training recorded: the input's numbers, which it is computed from, are gone.
std::string decibelsText(const llvm::json::Object& layer) {
  const auto decibels = layer.getNumber("input_decibels");
  return decibels ? llvm::formatv(" {0,5:F1} dB", *decibels).str() : "";
}

void printLayer(const llvm::json::Object& layer, llvm::raw_ostream& stream) {
  stream << llvm::format(
      "  %-48s %10s %10s  ", layer.getString("weight")->str().c_str(),
      base::FormatBytes(*layer.getInteger("bytes_before")).c_str(),
      base::FormatBytes(*layer.getInteger("bytes_after")).c_str());
  if (const auto kept = layer.getString("kept"))
    stream << "kept: " << *kept;
  else if (const auto decibels = layer.getNumber("decibels"))
    stream << llvm::format("%5.1f dB  %.2e", *decibels,
                           *layer.getNumber("relative_error"));
  else
    stream << "no error";
  if (const auto low = layer.getNumber("input_low"))
    stream << llvm::format("  %9.3g to %-9.3g", *low,
                           *layer.getNumber("input_high"))
           << decibelsText(layer)
           << (layer.getBoolean("keeps_input").value_or(false) ? ", kept" : "");
  stream << "\n";
}

void print(const llvm::json::Value& value, llvm::raw_ostream& stream) {
  const llvm::json::Object& facts = *value.getAsObject();
  stream << "  weight                                               before"
            "      after  signal to noise, relative error; the same of its "
            "input's range\n";
  for (const llvm::json::Value& layer : *facts.getArray("layers"))
    printLayer(*layer.getAsObject(), stream);
  const int64_t before = *facts.getInteger("bytes_before"),
                after = *facts.getInteger("bytes_after");
  stream << *facts.getString("folder") << ": parameters of "
         << base::FormatBytes(after) << ", before " << base::FormatBytes(before)
         << llvm::format(" (%.3f)\n", static_cast<double>(after) /
                                          static_cast<double>(before));
}

// Takes the options and the ranges of the trained model that --fake-quantize
// simulates. Returns false after a message.
bool takeRanges(QuantizeCommand& command, Session& session,
                std::optional<quantize::RecordedRanges>& recorded) {
  ImportOptions& model = command.model.options;
  if (model.fake_quantize.empty()) return true;
  auto simulated = command.model.import(session);
  quantize::FakeOptions fake;
  if (!simulated ||
      !take(quantize::parseFakeOptions(model.fake_quantize), fake))
    return false;
  model.fake_quantize.clear();
  command.options.keep = fake.keep;
  command.options.embeddings = fake.embeddings;
  command.options.convolutions = fake.convolutions;
  command.options.names = quantize::kFakeOptionNames;
  if (!fake.rounds_inputs) return true;
  quantize::RecordedRanges ranges;
  if (!take(quantize::RecordedRanges::read(*simulated, command.model.folder()),
            ranges))
    return false;
  command.options.calibration = &recorded.emplace(std::move(ranges));
  command.options.smoothing = 0;
  return true;
}

// Groups have no meaning for 8 bits, and activations of 8 bits none for
// weights of 4. Returns false after a message.
bool checkBits(const QuantizeCommand& command, bool has_groups) {
  if (command.bits == 8 && has_groups) {
    complain("expected --bits 4 with --group or --asymmetric, found --bits 8");
    return false;
  }
  if (command.bits == 4 && !command.calibration.empty()) {
    complain(
        "expected no --calibrate with --bits 4, whose products read floats, "
        "found one; leave it out");
    return false;
  }
  const bool has_float8 = command.format == "e4m3";
  if (has_float8 && command.bits != 8) {
    complain("expected --bits 8 with --format e4m3, found --bits 4");
    return false;
  }
  if (has_float8 && !command.calibration.empty()) {
    complain(
        "expected no --calibrate with --format e4m3, whose products read "
        "floats, found one; leave it out");
    return false;
  }
  return true;
}

int run(QuantizeCommand& command, bool has_groups) {
  if (!command.model.finish() || !checkBits(command, has_groups))
    return kUsageError;
  Session session;
  std::optional<quantize::RecordedRanges> recorded;
  if (!takeRanges(command, session, recorded)) return kUserError;
  auto module = command.model.import(session);
  if (!module) return kUserError;
  command.options.folder = command.model.folder();
  if (command.bits == 4) command.options.groups = command.groups;
  command.options.float8 = command.format == "e4m3";
  RangeMethod method;
  if (!take(parseRangeMethod(command.range), method)) return kUsageError;
  std::optional<FileCalibration> calibration;
  if (!command.calibration.empty()) {
    std::vector<std::string> files;
    if (!take(calibrationFiles(command.calibration), files)) return kUserError;
    command.options.convolutions = true;
    command.options.calibration =
        &calibration.emplace(std::move(files), method, command.options.folder);
  }
  const absl::StatusOr<quantize::Report> report =
      quantize::quantizeModel(*module, command.options, command.output);
  if (!report.ok()) {
    complain(std::string(report.status().message()));
    return kUserError;
  }
  show(factsOf(*report, command.output), command.json, print);
  return kSuccess;
}

}  // namespace

Command addQuantize(CLI::App& app) {
  auto state = std::make_shared<QuantizeCommand>();
  CLI::App* command = app.add_subcommand(
      "quantize",
      "Round matrix products and convolutions to 8 or 4 bits, and report the "
      "errors");
  state->model.add(command, kAnyModel);
  command
      ->add_option("-o,--output", state->output,
                   "The new folder, which all commands take as a model")
      ->required();
  CLI::Option* bits =
      command
          ->add_option("--bits", state->bits,
                       "Round weights to integers of this many bits: 8, with "
                       "a scale per output channel, or 4, with a scale per "
                       "group; default: 8")
          ->check(CLI::IsMember({4, 8}));
  CLI::Option* format =
      command
          ->add_option("--format", state->format,
                       "Numbers that 8 bits stand for: integer, or e4m3, a "
                       "float with 3 bits of fraction and the largest number "
                       "448; default: integer")
          ->check(CLI::IsMember({"integer", "e4m3"}));
  command
      ->add_option("--group", state->groups.group,
                   "Numbers that share a scale of 4 bits, along the dimension "
                   "that products sum over: 32, 64 or 128; default: 64")
      ->check(CLI::IsMember({32, 64, 128}))
      ->needs(bits);
  command
      ->add_flag("--asymmetric", state->groups.asymmetric,
                 "Give each group of 4 bits a zero point, too")
      ->needs(bits);
  CLI::Option* calibrate = command->add_option(
      "--calibrate", state->calibration,
      "Round the inputs of these products to 8 bits too, and the weights and "
      "inputs of convolutions, with fixed scales that cover the inputs' ranges "
      "on this data: a safetensors file as for partita run --inputs, or a "
      "folder of such files");
  command
      ->add_option("--range", state->range,
                   "How --calibrate chooses ranges: minmax, percentile=99.99 "
                   "(of the numbers) or entropy; default: minmax")
      ->needs(calibrate);
  command
      ->add_option("--smooth", state->options.smoothing,
                   "How much of the range of an input's channels moves to the "
                   "weights, from 0 (nothing) to 1; default: 0.7")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(calibrate);
  CLI::Option* embeddings =
      command->add_flag("--embeddings", state->options.embeddings,
                        "Round tables that only look-ups by row read, too");
  CLI::Option* keep =
      command
          ->add_option("--keep", state->options.keep,
                       "Keep the weights that match this pattern as they are; "
                       "may be repeated: \"*.lm_head\"")
          ->allow_extra_args(false);
  CLI::Option* least =
      command
          ->add_option("--min-snr", state->options.least_decibels,
                       "Keep weights and inputs whose rounding would leave "
                       "less signal to noise, in decibels, e.g. 35")
          ->check(CLI::NonNegativeNumber);
  // --fake-quantize chooses weights and inputs by the options that the model
  // was trained with, and takes the ranges that its steps recorded.
  for (CLI::Option* other : {calibrate, embeddings, keep, least, bits, format})
    command->get_option("--fake-quantize")->excludes(other);
  addJson(state->json, command);
  command->footer(
      "Example:\n  partita quantize model.onnx --dim batch=1,seq=128 -o "
      "model.q && partita compile model.q -o model.partita");
  return {command, [state, command] {
            return run(
                *state,
                command->count("--group") + command->count("--asymmetric") > 0);
          }};
}

}  // namespace partita::driver
