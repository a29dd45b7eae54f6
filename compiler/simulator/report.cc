// Writes sections of plain HTML and SVG. Sizes are in percent, so zooming only
// changes a width.
#include "compiler/simulator/report.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/simulator/memory.h"
#include "compiler/simulator/trace.h"
#include "runtime/base/quantity.h"

namespace partita::simulator {
namespace {

using Kind = Span::Kind;

// Upper bounds on drawn classes and listed operations.
constexpr size_t kMostRows = 48, kMostOperations = 40;
// Shares of a step. Shorter spans are invisible. Longer ones have room for a
// name.
constexpr double kVisible = 1.0 / 4000, kNamed = 1.0 / 60;
constexpr int kRowHeight = 22, kLinkHeight = 8;

// Names are to the left of a drawing, and get less room on a narrow page.
constexpr char kStyle[] = R"(
:root{--names:230px}*{box-sizing:border-box}
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:1180px;padding:24px;color:#1b2733;background:#fff}
h1{font-size:24px;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:18px;margin:34px 0 8px}h3{font-size:15px;margin:18px 0 6px}
p{margin:4px 0 10px;color:#51606e}small{color:#51606e;font-size:12px}
.facts{display:flex;flex-wrap:wrap;gap:12px;margin:16px 0}.fact{border:1px solid #d9e0e6;border-radius:8px;padding:8px 14px}
.fact b{display:block;font-size:20px;color:#1b2733}.fact span{color:#51606e;font-size:13px}
table{border-collapse:collapse;width:100%;font-size:13px}th{text-align:left;color:#51606e;font-weight:600;vertical-align:bottom}
td,th{padding:3px 10px 3px 0;border-bottom:1px solid #e8edf1;vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap}
td small{display:block}td+td small{min-width:180px}summary{cursor:pointer;font-size:12px;color:#51606e}tr.chosen td{font-weight:600}tr.chosen small{font-weight:400}
pre{font-size:13px;background:#f6f8fa;border:1px solid #e8edf1;border-radius:8px;padding:10px 14px;overflow-x:auto}
.legend{line-height:1.7}.legend span{margin-right:16px;font-size:13px;display:inline-block}
.legend i{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:5px;vertical-align:-1px}
.rows{display:grid;grid-template-columns:var(--names) minmax(0,1fr);border-top:1px solid #e8edf1}
.names div{font-size:12px;white-space:nowrap;overflow:hidden;text-overflow:ellipsis;padding-right:8px}
.scroll{overflow-x:auto}svg{display:block}svg text{font:11px system-ui,sans-serif;fill:#fff;pointer-events:none}
.c0{fill:#2f7d6d}.c1{fill:#c4622d}.c2{fill:#e0a458}.c3{fill:#8a6fb3}.c4{fill:#5b8bc0}.c5{fill:#e6eaee}
button{font:inherit;font-size:13px;padding:2px 12px;margin-right:6px;border:1px solid #c3ccd4;border-radius:6px;background:#f6f8fa;cursor:pointer}
.axis{font-size:12px;color:#51606e;display:flex;justify-content:space-between}.beside{padding-left:var(--names)}
@media(max-width:700px){:root{--names:104px}body{padding:12px}h1{font-size:19px}.fact{padding:6px 10px}.fact b{font-size:17px}
.names div{white-space:normal;font-size:10px;line-height:11px!important}}
)";

// Indexed by Span::Kind.
constexpr const char* kClasses[] = {"c0", "c1", "c2", "c3", "c4", "c5"};
constexpr const char* kColours[] = {"#2f7d6d", "#c4622d", "#e0a458",
                                    "#8a6fb3", "#5b8bc0", "#e6eaee"};
constexpr const char* kKindNames[] = {
    "computing", "exposed collectives", "overlapped collectives",
    "sending",   "exposed receives",    "waiting for others"};

std::string Seconds(double seconds) {
  if (seconds >= 1) return absl::StrFormat("%.3f s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.3f ms", seconds * 1e3);
  return absl::StrFormat("%.1f µs", seconds * 1e6);
}

std::string Percent(double share) {
  return absl::StrFormat("%.1f%%", 100 * share);
}

class ReportWriter {
 public:
  ReportWriter(const Simulation& simulation, const program::Program& program,
               const ReportFacts& facts)
      : simulation_(simulation),
        program_(program),
        facts_(facts),
        rows_(std::min(kMostRows, simulation.classes.size())) {}

  std::string Write() {
    Head();
    TimeOfEach();
    Timeline();
    Memory();
    Communication();
    Operations();
    if (facts_.plan) Plan(*facts_.plan);
    absl::StrAppend(&page_, "</body></html>\n");
    return std::move(page_);
  }

 private:
  void Add(const std::string& text) { page_ += text; }

  void Fact(const std::string& value, const std::string& what) {
    Add(absl::StrCat("<div class=\"fact\"><b>", value, "</b><span>", what,
                     "</span></div>\n"));
  }

  void Head() {
    Add(absl::StrCat(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
        "charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width,initial-scale=1\"><title>",
        HtmlText(facts_.model), "</title><style>", kStyle,
        "</style></head><body>\n<h1>", HtmlText(facts_.model), "</h1>\n<p>",
        facts_.mesh.empty() ? "one device" : "mesh ", HtmlText(facts_.mesh),
        ", simulated on ", HtmlText(facts_.cluster),
        "</p>\n<div class=\"facts\">\n"));
    int64_t devices = 0, most = 0;
    for (const DeviceClass& each : simulation_.classes) {
      devices += each.devices;
      most = std::max(most, MemoryOf(program_, each.entry).total());
    }
    Fact(Seconds(simulation_.step), "a step");
    Fact(absl::StrCat(devices), devices == 1 ? "device" : "devices");
    Fact(Percent(simulation_.Bubble()), "waiting for others (bubble)");
    Fact(Percent(simulation_.Exposed()), "exposed communication");
    Fact(base::FormatBytes(most),
         absl::StrCat(
             static_cast<double>(most) > facts_.device_memory
                 ? "does not fit in the "
                 : "at most, of ",
             base::FormatBytes(static_cast<int64_t>(facts_.device_memory)),
             " of a device"));
    Add("</div>\n");
  }

  void Legend(std::initializer_list<Kind> kinds) {
    Add("<p class=\"legend\">");
    for (const Kind kind : kinds)
      Add(absl::StrCat(
          "<span><i style=\"background:", kColours[static_cast<int>(kind)],
          "\"></i>", kKindNames[static_cast<int>(kind)], "</span>"));
    Add("</p>\n");
  }

  // Writes the names on the left. The caller adds the drawing and closes the
  // grid.
  void OpenRows(int height) {
    Add("<div class=\"rows\"><div class=\"names\">\n");
    for (size_t i = 0; i < rows_; ++i)
      Add(
          absl::StrFormat("<div style=\"height:%dpx;line-height:%dpx\">%s"
                          "</div>\n",
                          height, height, HtmlText(Describe(simulation_, i))));
    Add("</div>");
  }

  void NoteRows() {
    if (rows_ < simulation_.classes.size())
      Add(absl::StrCat("<p>The first ", rows_, " of ",
                       simulation_.classes.size(),
                       " classes of devices.</p>\n"));
  }

  static std::string Box(double from, double share, int y, int height,
                         Kind kind, const std::string& what) {
    return absl::StrFormat(
        "<rect class=\"%s\" x=\"%.4f%%\" width=\"%.4f%%\" y=\"%d\" "
        "height=\"%d\"><title>%s</title></rect>\n",
        kClasses[static_cast<int>(kind)], 100 * from, 100 * share, y, height,
        HtmlText(what));
  }

  void TimeOfEach() {
    Add("<h2>Where the time goes</h2>\n");
    Legend({Kind::kCompute, Kind::kCollective, Kind::kReceive, Kind::kWait});
    OpenRows(kRowHeight);
    Add(absl::StrFormat("<svg width=\"100%%\" height=\"%d\">\n",
                        static_cast<int>(rows_) * kRowHeight));
    for (size_t i = 0; i < rows_ && simulation_.step > 0; ++i) {
      const DeviceTimes& times = simulation_.times[i];
      const std::pair<Kind, double> parts[] = {
          {Kind::kCompute, times.compute},
          {Kind::kCollective, times.collectives},
          {Kind::kReceive, times.transfers},
          {Kind::kWait, times.idle}};
      double from = 0;
      for (const auto& [kind, seconds] : parts) {
        const double share = seconds / simulation_.step;
        Add(Box(from, share, static_cast<int>(i) * kRowHeight + 2,
                kRowHeight - 4, kind,
                absl::StrCat(kKindNames[static_cast<int>(kind)], ": ",
                             Seconds(seconds), ", ", Percent(share))));
        from += share;
      }
    }
    Add("</svg></div>\n");
    NoteRows();
  }

  // The spans to draw in a row. A span too short to be visible is merged with
  // the previous one if both have the same kind.
  std::vector<Span> Visible(size_t row, bool link) const {
    std::vector<Span> visible;
    const double least = simulation_.step * kVisible;
    for (const Span& span : sorted_.at(row)) {
      const bool on_link =
          span.kind == Kind::kTransfer || span.kind == Kind::kOverlapped;
      if (on_link != link) continue;
      Span shown = span;
      if (shown.call >= 0 && shown.kind == Kind::kCompute)
        shown.name = shown.call;
      if (!visible.empty()) {
        Span& last = visible.back();
        const bool small =
            shown.end - shown.start < least || last.end - last.start < least;
        if (last.kind == shown.kind && shown.start - last.end < least &&
            (small || last.name == shown.name)) {
          if (shown.end - shown.start > last.end - last.start)
            last.name = shown.name;
          last.end = std::max(last.end, shown.end);
          continue;
        }
      }
      visible.push_back(shown);
    }
    return visible;
  }

  void DrawSpan(const Span& span, int y, int height) {
    const double from = span.start / simulation_.step,
                 share = (span.end - span.start) / simulation_.step;
    const std::string& name = simulation_.names[static_cast<size_t>(span.name)];
    const std::string box =
        Box(from, share, y, height, span.kind,
            absl::StrCat(name, ": ", Seconds(span.end - span.start), " from ",
                         Seconds(span.start), ", ",
                         kKindNames[static_cast<int>(span.kind)]));
    Add(box);
    if (share < kNamed || height < kRowHeight - 4 || span.kind == Kind::kWait)
      return;
    Add(
        absl::StrFormat("<svg x=\"%.4f%%\" width=\"%.4f%%\" y=\"%d\" "
                        "height=\"%d\"><text x=\"4\" y=\"13\">%s</text>"
                        "</svg>\n",
                        100 * from, 100 * share, y, height, HtmlText(name)));
  }

  void Timeline() {
    for (const Span& span : simulation_.spans)
      sorted_[static_cast<size_t>(span.device_class)].push_back(span);
    for (auto& [row, spans] : sorted_)
      std::sort(spans.begin(), spans.end(),
                [](const Span& a, const Span& b) { return a.start < b.start; });
    constexpr int kHeight = kRowHeight + kLinkHeight + 2;
    Add("<h2>Timeline</h2>\n");
    Legend({Kind::kCompute, Kind::kCollective, Kind::kOverlapped,
            Kind::kTransfer, Kind::kReceive, Kind::kWait});
    Add("<p><button onclick=\"zoom(2)\">zoom in</button><button "
        "onclick=\"zoom(.5)\">zoom out</button> The thin bar below each row "
        "shows its links. Point at a box for its name and time.</p>\n");
    OpenRows(kHeight);
    Add(
        absl::StrFormat("<div class=\"scroll\"><svg id=\"timeline\" "
                        "width=\"100%%\" height=\"%d\">\n",
                        static_cast<int>(rows_) * kHeight));
    for (size_t row = 0; row < rows_ && simulation_.step > 0; ++row) {
      if (sorted_.count(row) == 0) continue;
      const int y = static_cast<int>(row) * kHeight + 2;
      for (const Span& span : Visible(row, /*link=*/false))
        DrawSpan(span, y, kRowHeight - 4);
      for (const Span& span : Visible(row, /*link=*/true))
        DrawSpan(span, y + kRowHeight - 4, kLinkHeight);
    }
    Add(
        absl::StrCat("</svg></div></div>\n<div class=\"axis beside\"><span>0"
                     "</span><span>",
                     Seconds(simulation_.step), "</span></div>\n"));
    NoteRows();
    Add("<script>let scale=1;function zoom(by){scale=Math.max(1,scale*by);"
        "document.getElementById('timeline').style.width=100*scale+'%'}"
        "</script>\n");
  }

  // Memory over time, as points of a chart 1000 wide and 200 high.
  std::string MemoryLine(size_t row, int64_t most) const {
    const int entry = simulation_.classes[row].entry;
    const int64_t fixed = MemoryOf(program_, entry).fixed();
    const std::vector<int64_t> alive = AliveBytes(program_, entry);
    const auto& main = simulation_.main[row];
    std::string points;
    for (size_t i = 0; i < main.size(); ++i) {
      const bool last = i + 1 == main.size();
      const size_t end = last ? alive.size() : main[i + 1].instruction;
      int64_t high = 0;
      for (size_t k = main[i].instruction; k < end; ++k)
        high = std::max(high, alive[k]);
      const double y = 200 - 196 * static_cast<double>(fixed + high) /
                                 static_cast<double>(most);
      const double until = last ? simulation_.step : main[i + 1].time;
      for (const double x : {main[i].time, until})
        absl::StrAppend(
            &points,
            absl::StrFormat("%.2f,%.2f ", 1000 * x / simulation_.step, y));
    }
    return points;
  }

  void Memory() {
    Add("<h2>Memory over time</h2>\n");
    int64_t most = 1;
    for (const DeviceClass& each : simulation_.classes)
      most = std::max(most, MemoryOf(program_, each.entry).total());
    Add("<p class=\"legend\">");
    for (size_t i = 0; i < rows_; ++i)
      Add(absl::StrFormat(
          "<span><i style=\"background:%s\"></i>%s: %s</span> ", ColourOf(i),
          HtmlText(Describe(simulation_, i)),
          base::FormatBytes(
              MemoryOf(program_, simulation_.classes[i].entry).total())));
    Add(absl::StrCat(
        "</p>\n<p>Parameters, states and the live part of the arena. The "
        "figures above are the reserved bytes. The top of the chart is ",
        base::FormatBytes(most), ".</p>\n",
        "<svg viewBox=\"0 0 1000 200\" width=\"100%\" height=\"200\" "
        "preserveAspectRatio=\"none\" style=\"border:1px solid "
        "#e8edf1\">\n"));
    for (size_t i = 0; i < rows_ && simulation_.step > 0; ++i)
      Add(absl::StrFormat(
          "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" "
          "vector-effect=\"non-scaling-stroke\" points=\"%s\"/>\n",
          ColourOf(i), MemoryLine(i, most)));
    Add(absl::StrCat("</svg>\n<div class=\"axis\"><span>0</span><span>",
                     Seconds(simulation_.step), "</span></div>\n"));
  }

  std::string ColourOf(size_t row) const {
    return absl::StrFormat("hsl(%d,55%%,42%%)",
                           static_cast<int>(360 * row / rows_ + 165) % 360);
  }

  void OpenTable(std::initializer_list<const char*> words,
                 std::initializer_list<const char*> numbers) {
    Add("<div class=\"scroll\"><table><tr>");
    for (const char* word : words) Add(absl::StrCat("<th>", word, "</th>"));
    for (const char* number : numbers)
      Add(absl::StrCat("<th class=\"n\">", number, "</th>"));
    Add("</tr>\n");
  }
  void CloseTable() { Add("</table></div>\n"); }

  void Word(const std::string& text, const std::string& below = "") {
    Add(absl::StrCat("<td>", HtmlText(text)));
    if (!below.empty())
      Add(absl::StrCat("<small>", HtmlText(below), "</small>"));
    Add("</td>");
  }
  void Figure(const std::string& text) {
    Add(absl::StrCat("<td class=\"n\">", text, "</td>"));
  }

  // Writes the number of calls, exposed seconds, and share of the step.
  void Times(const OperationTotal& total) {
    Figure(absl::StrFormat("%.4g", total.calls));
    Figure(Seconds(total.seconds));
    Figure(
        Percent(simulation_.step > 0 ? total.seconds / simulation_.step : 0));
    Add("</tr>\n");
  }

  // True for collectives and transfers that send data. A slice stays on its
  // device.
  static bool Moves(const OperationTotal& total) {
    return total.bytes > 0 && total.kind != "all_slice";
  }

  // Collectives or transfers of one kind, over the same axes, for one reason.
  using Group = std::vector<const OperationTotal*>;

  // In the order of their exposed time, longest first.
  std::vector<Group> GroupsByReason() const {
    std::vector<Group> groups;
    std::map<std::tuple<std::string, std::string, std::string>, size_t> known;
    for (const OperationTotal& total : simulation_.operations) {
      if (!Moves(total)) continue;
      const auto [found, is_new] =
          known.try_emplace({total.kind, total.axes, total.why}, groups.size());
      if (is_new) groups.emplace_back();
      groups[found->second].push_back(&total);
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) {
                       return SumOf(a).seconds > SumOf(b).seconds;
                     });
    return groups;
  }

  // Calls, seconds, and bytes of one step, of all operations of a group.
  static OperationTotal SumOf(const Group& group) {
    OperationTotal sum = *group.front();
    double bytes = sum.calls = sum.seconds = 0;
    for (const OperationTotal* total : group) {
      sum.calls += total->calls;
      sum.seconds += total->seconds;
      bytes += total->calls * static_cast<double>(total->bytes);
    }
    sum.bytes = static_cast<int64_t>(bytes);
    return sum;
  }

  // A cell with the reason and the operations, folded if there are several.
  void Reason(const Group& group) {
    const std::string& why = group.front()->why;
    Add(absl::StrCat("<td>", HtmlText(why.empty() ? "no reason is known" : why),
                     "<details><summary>",
                     group.size() == 1
                         ? "1 operation"
                         : absl::StrCat(group.size(), " operations"),
                     "</summary>"));
    for (const OperationTotal* total : group)
      Add(absl::StrCat("<small>", HtmlText(total->name), " in ",
                       HtmlText(total->function), ": ",
                       base::FormatBytes(total->bytes), ", ",
                       absl::StrFormat("%.4g", total->calls), " a step, ",
                       Seconds(total->seconds), "</small>"));
    Add("</details></td>");
  }

  void Communication() {
    Add("<h2>Collectives and transfers</h2>\n<p>One line for each reason, "
        "with its operations behind it. Times are exposed times, averaged over "
        "all devices.</p>\n");
    OpenTable({"what", "why"},
              {"bytes a step", "among", "a step", "time", "of step"});
    for (const Group& group : GroupsByReason()) {
      const OperationTotal sum = SumOf(group);
      Add("<tr>");
      Word(sum.kind, sum.axes.empty() ? "" : "over " + sum.axes);
      Reason(group);
      Figure(base::FormatBytes(sum.bytes));
      Figure(sum.group > 0 ? absl::StrCat(sum.group) : std::string("2"));
      Times(sum);
    }
    CloseTable();
  }

  void Operations() {
    Add("<h2>Most expensive operations</h2>\n");
    OpenTable({"what", "of", "in"}, {"a step", "time", "of step"});
    size_t listed = 0;
    for (const OperationTotal& total : simulation_.operations) {
      if (Moves(total) || total.seconds <= 0) continue;
      if (++listed > kMostOperations) break;
      Add("<tr>");
      Word(total.kind);
      Word(total.name, total.label);
      Word(total.function);
      Times(total);
    }
    CloseTable();
  }

  void Plan(const ReportPlan& plan) {
    const double chosen = plan.rows.front().step;
    Add(absl::StrCat(
        "<h2>The plan and its runners-up</h2>\n<p>The planner predicted a step "
        "of ",
        Seconds(chosen), "; this simulation of the compiled program has ",
        Seconds(simulation_.step), ". Bottleneck: ", HtmlText(plan.binds),
        ".</p>\n<pre>", HtmlText(plan.text), "</pre>\n"));
    OpenTable({"division"}, {"step", "longer by", "a device"});
    for (const ReportPlan::Row& row : plan.rows) {
      Add(&row == &plan.rows.front() ? "<tr class=\"chosen\">" : "<tr>");
      Word(row.division, row.why);
      Figure(Seconds(row.step));
      Figure(chosen > 0 ? Percent(row.step / chosen - 1) : "");
      Figure(base::FormatBytes(static_cast<int64_t>(row.memory)));
      Add("</tr>\n");
    }
    CloseTable();
    if (plan.gains.empty()) return;
    Add("<h3>Time saved by more hardware</h3>\n");
    OpenTable({"hardware"}, {"saved per step"});
    for (const ReportPlan::Gain& gain : plan.gains) {
      Add("<tr>");
      Word(gain.what);
      Figure(Seconds(gain.saved));
      Add("</tr>\n");
    }
    CloseTable();
  }

  const Simulation& simulation_;
  const program::Program& program_;
  const ReportFacts& facts_;
  const size_t rows_;
  std::map<size_t, std::vector<Span>> sorted_;
  std::string page_;
};

}  // namespace

std::string HtmlText(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

std::string WriteReport(const Simulation& simulation,
                        const program::Program& program,
                        const ReportFacts& facts) {
  return ReportWriter(simulation, program, facts).Write();
}

}  // namespace partita::simulator
