// Prints the planner's choice as text.
#include "compiler/driver/planning/choose_plan.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "runtime/base/quantity.h"

namespace partita::driver {

using llvm::StringRef;
using llvm::json::Object;
using llvm::json::Value;

void printChoice(const Value& value, llvm::raw_ostream& stream) {
  const Object& facts = *value.getAsObject();
  const auto number = [](const Object& object, StringRef key) {
    return object.getNumber(key).value_or(0);
  };
  const double step = number(facts, "step_seconds");
  stream << llvm::formatv(
                "# for {0} devices of {1}: a step of a batch of {2} in {3}, "
                "{4} a device\n",
                facts.getInteger("devices").value_or(0),
                facts.getString("cluster").value_or(""),
                facts.getInteger("batch").value_or(0),
                base::FormatSeconds(step),
                base::FormatBytes(facts.getInteger("memory_bytes").value_or(0)))
         << *facts.getString("text");
  if (const StringRef because = *facts.getString("because"); !because.empty())
    stream << "\ndivided by its layers: " << because << "\n";
  stream << llvm::formatv("\nchosen: {0}\nbinds: {1}\n",
                          *facts.getString("division"),
                          *facts.getString("binds"));
  if (facts.getBoolean("composed").value_or(false))
    stream
        << "composed of the prices of its layer kinds by the schedule: the "
           "program is long; partita simulate of the compiled plan is exact\n";
  if (const int64_t loops = facts.getInteger("loops").value_or(0))
    stream << "loops whose number of iterations depends on data: " << loops
           << ", counted as one iteration each\n";
  const auto about = [](const Object& object) {
    return object.getBoolean("composed").value_or(false) ? "about " : "";
  };
  if (facts.getBoolean("undivided").value_or(false))
    stream
        << "no division that was tried is faster than one device: all "
        << facts.getInteger("devices").value_or(0)
        << " would compute the same; take fewer devices, or a larger batch\n";
  for (const Value& each : *facts.getArray("precisions")) {
    const Object& other = *each.getAsObject();
    stream << llvm::formatv(
        "in {0}: {1}{2}, {3} a device{4}\n", *other.getString("precision"),
        about(other), base::FormatSeconds(number(other, "step_seconds")),
        base::FormatBytes(other.getInteger("memory_bytes").value_or(0)),
        other.getBoolean("fits").value_or(true) ? "" : ", which does not fit");
  }
  stream << llvm::formatv(
      "search: {0} divisions estimated, {1} priced by their layer kinds, {2} "
      "compiled and simulated in {3:f2} s\n",
      facts.getInteger("considered").value_or(0),
      facts.getInteger("priced_by_kinds").value_or(0),
      facts.getInteger("compiled").value_or(0),
      number(facts, "search_seconds"));
  if (const int64_t slow = facts.getInteger("too_slow").value_or(0); slow > 0)
    stream << slow << " more are slower by a lower bound and were left out\n";
  if (const int64_t failed = facts.getInteger("not_compiled").value_or(0);
      failed > 0)
    stream << failed << " more do not compile and were left out\n";
  stream << llvm::formatv("\n{0,-34} {1,8} {2,10} {3,9} {4,12}\n",
                          "functions, mean of a device", "calls", "ms",
                          "of step", "collectives");
  for (const Value& each : *facts.getArray("kinds")) {
    const Object& kind = *each.getAsObject();
    const double seconds = number(kind, "seconds");
    if (seconds < 0.001 * step) continue;
    stream << llvm::formatv("{0,-34} {1,8:f1} {2,10:f3} {3,8:f1}% {4,12:f3}\n",
                            *kind.getString("name"), number(kind, "calls"),
                            1e3 * seconds, 100 * seconds / step,
                            1e3 * number(kind, "collectives_seconds"));
  }
  if (!facts.getArray("alternatives")->empty()) stream << "\nrunners-up:\n";
  for (const Value& each : *facts.getArray("alternatives")) {
    const Object& other = *each.getAsObject();
    stream << llvm::formatv(
        "  {0}{1} (+{2:f1} %)  {3}  {4}\n      {5}\n", about(other),
        base::FormatSeconds(number(other, "step_seconds")),
        100 * number(other, "slower"),
        base::FormatBytes(other.getInteger("memory_bytes").value_or(0)),
        *other.getString("division"), *other.getString("why"));
  }
  stream << "\nsavings per step with better hardware:\n";
  for (const Value& each : *facts.getArray("gains")) {
    const Object& gain = *each.getAsObject();
    stream << llvm::formatv("  {0:f3} ms  {1}\n",
                            1e3 * number(gain, "saved_seconds"),
                            *gain.getString("what"));
  }
  stream << llvm::formatv(
      "\nto run it: partita compile MODEL --plan {0} --train {1} --target {2}\n"
      "(with the options that the model was given here: --dim and others)\n",
      facts.getString("output")->empty() ? StringRef("PLAN.yaml")
                                         : *facts.getString("output"),
      *facts.getString("train"), *facts.getString("target"));
  if (const StringRef output = *facts.getString("output"); !output.empty())
    stream << "wrote " << output << "\n";
}

}  // namespace partita::driver
