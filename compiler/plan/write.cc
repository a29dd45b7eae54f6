// Writes a plan as canonical text, and compares two plans.
#include <algorithm>
#include <cstdio>

#include "compiler/plan/names.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/text.h"

namespace partita::plan {
namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char hex[8];
      std::snprintf(hex, sizeof(hex), "\\x%02x", byte);
      quoted += hex;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Quotes words that YAML (null) or a mesh (axes, device_ids) would misread.
std::string Word(const std::string& text) {
  for (const char* word : {"null", "Null", "NULL", "device_ids", "axes"})
    if (text == word) return Quoted(text);
  return IsIdentifier(text) ? text : Quoted(text);
}

std::string Bytes(int64_t bytes) {
  const std::pair<const char*, int64_t> units[] = {{" TB", 1000000000000},
                                                   {" GB", 1000000000},
                                                   {" MB", 1000000},
                                                   {" kB", 1000}};
  for (const auto& [unit, factor] : units)
    if (bytes > 0 && bytes % factor == 0)
      return std::to_string(bytes / factor) + unit;
  return std::to_string(bytes) + " B";
}

std::string List(const std::vector<std::string>& words) {
  return "[" + Join(words) + "]";
}

std::string Globs(const std::vector<std::string>& globs) {
  if (globs.size() == 1) return Quoted(globs[0]);
  std::vector<std::string> words;
  for (const std::string& glob : globs) words.push_back(Quoted(glob));
  return List(words);
}

std::string Numbers(const std::vector<int>& numbers) {
  if (numbers.size() == 1) return std::to_string(numbers[0]);
  std::vector<std::string> words;
  for (int number : numbers) words.push_back(std::to_string(number));
  return List(words);
}

std::string AxisText(const core::Mesh& mesh, const core::AxisRef& ref) {
  const core::Axis& axis = mesh.axes[ref.axis];
  if (ref.pre == 1 && ref.size == axis.size) return Word(axis.name);
  return core::ToString(mesh, ref);
}

std::string RecomputeText(const std::vector<Recompute>& rules) {
  std::vector<std::string> words;
  for (const Recompute& rule : rules) {
    const std::string policy = NameOf(RecomputeNames(), rule.policy);
    words.push_back(rule.at.empty() ? policy
                                    : "{at: " + Globs(rule.at) +
                                          ", policy: " + policy + "}");
  }
  return words.size() == 1 ? words[0] : List(words);
}

std::string ExpertsText(const Plan& plan) {
  if (!plan.experts.has_value()) return "";
  std::string text;
  if (plan.experts->exchange.has_value())
    text = "exchange: " + NameOf(ExpertNames(), *plan.experts->exchange);
  if (plan.experts->rows > 0)
    text +=
        (text.empty() ? "rows: " : ", rows: ") + FactorText(plan.experts->rows);
  return "{" + text + "}";
}

std::string OffloadText(const Plan& plan) {
  if (plan.offload == Offload::kNone) return "";
  if (!plan.state_files.has_value())
    return NameOf(OffloadNames(), plan.offload);
  const int64_t buffers = plan.state_files->buffers;
  return "{optimizer: nvme, path: " + Quoted(plan.state_files->folder) +
         (buffers > 0 ? ", buffers: " + Bytes(buffers) : "") + "}";
}

std::string ScheduleText(const Schedule& schedule) {
  if (schedule.kind == ScheduleKind::kInterleaved)
    return "interleaved(" + std::to_string(schedule.chunks) + ")";
  if (schedule.kind == ScheduleKind::kFile) return Quoted(schedule.file);
  return NameOf(ScheduleNames(), schedule.kind);
}

std::string StageText(const Stage& stage) {
  return "{to: " + Quoted(stage.to) +
         (stage.mesh.has_value() ? ", mesh: " + ToString(*stage.mesh) : "") +
         "}";
}

using Field = std::pair<std::string, std::vector<std::string>>;

// Fields that are written as lists, one item per line. Empty at the default.
std::vector<Field> Lists(const Plan& plan) {
  std::vector<Field> fields;
  const auto add = [&](const char* name, auto& items, const auto& text) {
    std::vector<std::string> lines;
    for (const auto& item : items) lines.push_back(text(item));
    fields.push_back({name, std::move(lines)});
  };
  add("shard", plan.shard,
      [&](const Entry& entry) { return ToString(plan.mesh, entry); });
  add("stages", plan.stages, StageText);
  add("overrides", plan.overrides, [&](const Override& override) {
    return "{tensor: " + Quoted(override.tensor) + ", sharding: " +
           Quoted(core::ToString(plan.mesh, override.sharding)) + "}";
  });
  add("names", plan.names, [](const Name& name) {
    return Quoted(name.tensor + ":" + std::to_string(name.dim) + "=" +
                  name.dimension);
  });
  return fields;
}

// Fields that are written on one line; "" at the default.
std::vector<std::pair<std::string, std::string>> Scalars(const Plan& plan) {
  std::string budgets;
  for (const Budget& budget : plan.budgets)
    budgets += (budgets.empty() ? "{" : ", ") + budget.kind + ": " +
               Bytes(budget.bytes);
  if (!budgets.empty()) budgets += "}";
  return {{"mesh", ToString(plan.mesh)},
          {"zero", plan.zero == 0 ? "" : std::to_string(plan.zero)},
          {"gather",
           plan.gather.has_value()
               ? "{prefetch: " + std::to_string(plan.gather->prefetch) +
                     ", hold: " + NameOf(HoldNames(), plan.gather->hold) + "}"
               : ""},
          {"microbatches",
           plan.microbatches == 1 ? "" : std::to_string(plan.microbatches)},
          {"schedule",
           plan.schedule.has_value() ? ScheduleText(*plan.schedule) : ""},
          {"recompute",
           plan.recompute.empty() ? "" : RecomputeText(plan.recompute)},
          {"precision", plan.precision.has_value()
                            ? NameOf(PrecisionNames(), *plan.precision)
                            : ""},
          {"offload", OffloadText(plan)},
          {"attention", plan.attention.has_value()
                            ? NameOf(AttentionNames(), *plan.attention)
                            : ""},
          {"experts", ExpertsText(plan)},
          {"memory", plan.memory.has_value() ? Bytes(*plan.memory) : ""},
          {"budgets", budgets}};
}

}  // namespace

std::string ToString(const core::Mesh& mesh) {
  std::string axes, ids;
  for (const core::Axis& axis : mesh.axes)
    axes += (axes.empty() ? "" : ", ") + Word(axis.name) + ": " +
            std::to_string(axis.size);
  axes = "{" + axes + "}";
  for (int64_t id : mesh.device_ids)
    ids += (ids.empty() ? "" : ", ") + std::to_string(id);
  if (ids.empty()) return axes;
  return "{axes: " + axes + ", device_ids: [" + ids + "]}";
}

std::string ToString(const core::Mesh& mesh, const Entry& entry) {
  std::string text;
  if (!entry.stages.empty()) text = "stage: " + Numbers(entry.stages);
  if (!entry.at.empty())
    text += (text.empty() ? "at: " : ", at: ") + Globs(entry.at);
  for (const ShardedDimension& sharded : entry.dimensions) {
    std::vector<std::string> axes;
    for (const core::AxisRef& axis : sharded.axes)
      axes.push_back(AxisText(mesh, axis));
    text += (text.empty() ? "" : ", ") + sharded.dimension + ": " +
            (axes.size() == 1 ? axes[0] : List(axes));
  }
  return "{" + text + "}";
}

std::string WritePlan(const Plan& plan) {
  const auto scalars = Scalars(plan);
  const auto lists = Lists(plan);
  std::string text;
  for (const std::string& name : FieldNames()) {
    for (const auto& [field, value] : scalars)
      if (field == name && !value.empty()) text += name + ": " + value + "\n";
    for (const auto& [field, items] : lists) {
      if (field != name || items.empty()) continue;
      text += name + ":\n";
      for (const std::string& item : items) text += "  - " + item + "\n";
    }
  }
  return text;
}

std::vector<std::string> DiffPlans(const Plan& a, const Plan& b) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& field, const std::string& old_text,
                       const std::string& new_text) {
    if (old_text == new_text) return;
    lines.push_back(field + ": " + (old_text.empty() ? "-" : old_text) +
                    " -> " + (new_text.empty() ? "-" : new_text));
  };
  const auto old_scalars = Scalars(a), new_scalars = Scalars(b);
  const auto old_lists = Lists(a), new_lists = Lists(b);
  for (const std::string& name : FieldNames()) {
    for (size_t i = 0; i < old_scalars.size(); ++i)
      if (old_scalars[i].first == name)
        add(name, old_scalars[i].second, new_scalars[i].second);
    for (size_t i = 0; i < old_lists.size(); ++i) {
      if (old_lists[i].first != name) continue;
      const auto& before = old_lists[i].second;
      const auto& after = new_lists[i].second;
      for (size_t j = 0; j < std::max(before.size(), after.size()); ++j)
        add(name + "[" + std::to_string(j) + "]",
            j < before.size() ? before[j] : "",
            j < after.size() ? after[j] : "");
    }
  }
  return lines;
}

std::string Where(const Plan& plan, Location where) {
  std::string origin = plan.origin.empty() ? "plan" : plan.origin;
  if (where.line == 0) return origin;
  return origin + ":" + std::to_string(where.line) + ":" +
         std::to_string(where.column);
}

}  // namespace partita::plan
