// Reads --distill.
#include <cmath>

#include "frontends/distillation/distillation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace partita::distillation {
namespace {

using absl::InvalidArgumentError;
using absl::Status;
using llvm::StringRef;

Status refuse(const std::string& expected, StringRef found) {
  return InvalidArgumentError("--distill: expected " + expected + ", found '" +
                              found.str() + "'");
}

Status takeNumber(StringRef key, StringRef text, bool positive, double& value) {
  if (!text.getAsDouble(value) && std::isfinite(value) &&
      (positive ? value > 0 : value >= 0))
    return absl::OkStatus();
  return refuse(key.str() + "=X with a number X " +
                    (positive ? "above 0" : "of at least 0"),
                text);
}

Status takePair(StringRef key, StringRef text, Pair& pair) {
  const auto [student, teacher] = text.split(':');
  pair = {student.trim().str(), teacher.trim().str()};
  if (!pair.student.empty() && !pair.teacher.empty()) return absl::OkStatus();
  return refuse(key.str() + "=STUDENT:TEACHER, names in the two models", text);
}

Status take(StringRef key, StringRef value, Options& options) {
  if (key == "temperature")
    return takeNumber(key, value, /*positive=*/true, options.temperature);
  if (key == "kl") return takeNumber(key, value, false, options.kl);
  if (key == "cross_entropy")
    return takeNumber(key, value, false, options.cross_entropy);
  if (key == "hidden_weight")
    return takeNumber(key, value, false, options.hidden_weight);
  if (key == "logits") return takePair(key, value, options.logits);
  if (key == "teacher_precision") {
    if (value != "bf16" && value != "f16")
      return refuse("teacher_precision=bf16 or f16", value);
    options.teacher_precision = value.str();
    return absl::OkStatus();
  }
  if (key == "hidden_loss") {
    if (value != "mse" && value != "cosine")
      return refuse("hidden_loss=mse or cosine", value);
    options.hidden_loss =
        value == "mse" ? HiddenLoss::kMse : HiddenLoss::kCosine;
    return absl::OkStatus();
  }
  if (key != "hidden")
    return refuse(
        "temperature=, kl=, cross_entropy=, logits=, hidden=, hidden_loss=, "
        "hidden_weight= or teacher_precision=, separated by ';'",
        key);
  llvm::SmallVector<StringRef> pairs;
  value.split(pairs, ',', -1, /*KeepEmpty=*/false);
  for (StringRef text : pairs) {
    options.hidden.emplace_back();
    if (Status status = takePair(key, text, options.hidden.back());
        !status.ok())
      return status;
  }
  if (options.hidden.empty())
    return refuse("hidden=STUDENT:TEACHER, names in the two models", value);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::string& text) {
  Options options;
  llvm::SmallVector<StringRef> fields;
  StringRef(text).split(fields, ';', -1, /*KeepEmpty=*/false);
  std::vector<std::string> named;
  for (StringRef field : fields) {
    if (field.trim().empty()) continue;
    if (!field.contains('='))
      return refuse("NAME=VALUE, as in \"temperature=2; kl=1\"", field.trim());
    const auto [key, value] = field.split('=');
    if (llvm::is_contained(named, key.trim()))
      return refuse("each name once", key.trim());
    named.push_back(key.trim().str());
    if (Status status = take(key.trim(), value.trim(), options); !status.ok())
      return status;
  }
  for (const char* name : {"hidden_loss", "hidden_weight"})
    if (llvm::is_contained(named, name) && options.hidden.empty())
      return refuse("hidden=STUDENT:TEACHER, which values to compare, with " +
                        std::string(name),
                    text);
  for (const char* name : {"temperature", "logits"})
    if (llvm::is_contained(named, name) && options.kl == 0)
      return refuse("kl above 0 with " + std::string(name), text);
  if (options.kl == 0 && (options.hidden.empty() || options.hidden_weight == 0))
    return refuse("kl or a hidden loss with a weight above 0", text);
  return options;
}

}  // namespace partita::distillation
