// Prints the result of verify.
#include <algorithm>
#include <string>

#include "compiler/driver/verify/verify.h"
#include "llvm/Support/FormatVariadic.h"

namespace partita::driver {
namespace {

// "these differ: the gradient of h.0.up.weight, ... and 3 more results"
std::string unequalResults(const llvm::json::Object& facts) {
  constexpr size_t kShown = 4;
  const llvm::json::Array* names = facts.getArray("unequal_results");
  if (names == nullptr) return "";
  std::string text = "these differ: ";
  for (size_t i = 0; i < std::min(kShown, names->size()); ++i)
    text += (i > 0 ? ", " : "") + (*names)[i].getAsString()->str();
  if (names->size() > kShown)
    text += " and " + std::to_string(names->size() - kShown) + " more results";
  return text + "\n";
}

}  // namespace

void printVerification(const llvm::json::Value& verification,
                       llvm::raw_ostream& stream) {
  const llvm::json::Object& facts = *verification.getAsObject();
  stream << llvm::formatv(
      "mesh {0}: compared {1} values of operations on {2} devices with the "
      "undivided model, and its results with the imported one's, in {3:F1} s\n",
      *facts.getString("mesh"), *facts.getInteger("compared"),
      *facts.getInteger("devices"), *facts.getNumber("seconds"));
  if (const int64_t gradients = *facts.getInteger("gradients"))
    stream << llvm::formatv(
        "a step of training: the gradients of {0} parameters and their new "
        "values among them\n",
        gradients);
  if (!facts.getBoolean("imported_compared").value_or(true))
    stream << "not compared with the model as imported: batch norms take the "
              "statistics of each microbatch\n";
  if (const int64_t dropped = *facts.getInteger("layers_left_out"))
    stream << llvm::formatv(
        "left out {0} layers that repeat others; --full runs them all\n",
        dropped);
  stream << llvm::formatv("weights: {0} read, {1} made up\n",
                          *facts.getInteger("weights_read"),
                          *facts.getInteger("weights_made_up"));
  if (auto first = facts.getString("first"))
    stream << "NOT the same model; first difference: " << *first << "\n"
           << unequalResults(facts);
  else
    stream << llvm::formatv(
        "the same model: largest difference {0:E2} of a value's largest "
        "element, {1:E2} from the imported model\n",
        *facts.getNumber("largest"), *facts.getNumber("largest_to_imported"));
}

}  // namespace partita::driver
