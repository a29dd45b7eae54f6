// Draws a timetable as text and as SVG.
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "compiler/core/timetable.h"

namespace partita::core {
namespace {

// Limits on the size of the output; cells shrink instead.
constexpr int kFewBands = 3;
constexpr int kMaxBands = 12;
constexpr double kMaxPixels = 8000;

std::string Format(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

double ShortestCell(const Timetable& table) {
  double shortest = table.end;
  for (const std::vector<TimedCell>& cells : table.ranks)
    for (const TimedCell& timed : cells)
      if (timed.end > timed.start)
        shortest = std::min(shortest, timed.end - timed.start);
  return shortest;
}

std::vector<int> StagesOf(const Timetable& table, int rank) {
  std::vector<int> stages;
  for (size_t stage = 0; stage < table.rank_of_stage.size(); ++stage)
    if (table.rank_of_stage[stage] == rank)
      stages.push_back(static_cast<int>(stage));
  return stages;
}

std::string Summary(const Timetable& table) {
  return Format("%d ranks, %d stages, %d microbatches, a step takes %.6g, ",
                static_cast<int>(table.ranks.size()),
                static_cast<int>(table.rank_of_stage.size()),
                table.microbatches, table.step) +
         Format("bubble %.1f%%", 100 * table.bubble);
}

std::string RankSummary(const Timetable& table, int rank) {
  std::string text =
      Format("rank %d: bubble %.1f%%", rank, 100 * table.rank_bubble[rank]);
  const char* separator = ", in flight at most ";
  for (int stage : StagesOf(table, rank)) {
    if (table.in_flight[stage].empty()) continue;  // nothing is trained
    int peak = 0;
    for (const InFlightChange& change : table.in_flight[stage])
      peak = std::max(peak, change.count);
    text += Format("%s%d on stage %d", separator, peak, stage);
    separator = ", ";
  }
  return text;
}

// Returns the letter, the microbatch if it fits, then dashes.
std::string Label(const Cell& cell, int columns) {
  const std::string name = ToString(cell);
  std::string text = name.substr(0, 1) + std::to_string(cell.microbatch);
  if (static_cast<int>(text.size()) > columns) text.resize(1);
  text.resize(columns, '-');
  return text;
}

// Draws one stage's row: spaces, and `idle` where its rank is idle.
std::string TextRow(const std::vector<TimedCell>& cells, int stage, char idle,
                    double scale, int columns) {
  std::string row(columns, idle);
  for (const TimedCell& timed : cells) {
    const int start = static_cast<int>(std::lround(timed.start * scale));
    const int end = static_cast<int>(std::lround(timed.end * scale));
    if (end <= start) continue;
    const std::string text = timed.cell.stage == stage
                                 ? Label(timed.cell, end - start)
                                 : std::string(end - start, ' ');
    row.replace(start, end - start, text);
  }
  return row;
}

// Returns columns per unit of time, for bands of `room` columns.
double ColumnsPerTime(const Timetable& table, int room) {
  const double units = table.end / ShortestCell(table);
  const double label = 1 + std::to_string(table.microbatches - 1).size();
  // Fit the table into one band if the label of the shortest cell fits too.
  // Else use the label's width if that takes few bands. Else use one column for
  // the letter.
  double columns = std::min(label + 1, std::floor(room / units));
  if (columns < label && units * label <= kFewBands * room) columns = label;
  columns = std::max(1.0, columns);
  return std::min(columns * units, double{kMaxBands} * room) / table.end;
}

// Draws a mark and its time every ten columns.
std::string Ruler(double scale, int from, int columns) {
  std::string ruler;
  for (int column = 0; column < columns; column += 10) {
    const std::string text = "|" + Format("%.4g", (from + column) / scale);
    if (column > 0 && column + static_cast<int>(text.size()) > columns) break;
    ruler.resize(column, ' ');
    ruler += text;
  }
  return ruler;
}

// --- SVG ---------------------------------------------------------------------

constexpr double kLeft = 110, kTop = 70, kRow = 26, kGap = 8;

const char* ColourOf(Work work) {
  switch (work) {
    case Work::kForward:
      return "#7aa6d8";
    case Work::kBackward:
      return "#5fa55a";
    case Work::kInputGrad:
      return "#9ccf8f";
    case Work::kWeightGrad:
      return "#f0c05a";
  }
  return "";
}

std::string Rectangle(double x, double y, double width, double height,
                      const char* style) {
  return Format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" %s",
                x, y, width, height, style);
}

std::string Text(double x, double y, const char* anchor,
                 const std::string& text) {
  return Format("<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">", x, y,
                anchor) +
         text + "</text>\n";
}

std::string SvgCell(const TimedCell& timed, double y, double scale) {
  const Cell& cell = timed.cell;
  const double x = kLeft + timed.start * scale;
  const double width = (timed.end - timed.start) * scale;
  const std::string number = std::to_string(cell.microbatch);
  std::string svg =
      "<g class=\"cell\">" +
      Rectangle(x, y, width, kRow - 2,
                Format("fill=\"%s\" stroke=\"#ffffff\"/>", ColourOf(cell.work))
                    .c_str()) +
      "<title>" + ToString(cell) +
      Format(", %.6g to %.6g</title>", timed.start, timed.end);
  if (width >= 7.0 * number.size() + 3)
    svg += Text(x + width / 2, y + kRow / 2 + 3, "middle", number);
  return svg + "</g>\n";
}

std::string SvgLegend() {
  std::string svg;
  double x = kLeft;
  const std::pair<Work, const char*> entries[] = {
      {Work::kForward, "forward"},
      {Work::kBackward, "backward"},
      {Work::kInputGrad, "input gradient"},
      {Work::kWeightGrad, "weight gradient"}};
  for (const auto& [work, name] : entries) {
    svg += Rectangle(x, 34, 14, 14,
                     Format("fill=\"%s\"/>", ColourOf(work)).c_str());
    svg += Text(x + 20, 45, "start", name);
    x += 130;
  }
  svg += Rectangle(x, 34, 14, 14, "fill=\"#e8e8e8\"/>");
  svg += Text(x + 20, 45, "start", "bubble");
  svg += Format(
      "<line x1=\"%.2f\" y1=\"41\" x2=\"%.2f\" y2=\"41\" class=\"send\"/>",
      x + 90, x + 110);
  return svg + Text(x + 116, 45, "start", "transfer");
}

std::string SvgRuler(const Timetable& table, double scale, double bottom) {
  // Marks at 1, 2 or 5 times a power of ten, about 80 pixels apart.
  const double least = 80 / scale;
  double distance = std::pow(10, std::floor(std::log10(least)));
  for (double factor : {2.0, 2.5, 2.0})
    if (distance < least) distance *= factor;
  std::string svg;
  for (int i = 0; i * distance <= table.end; ++i) {
    const double x = kLeft + i * distance * scale;
    svg += Format(
        "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
        "class=\"mark\"/>\n",
        x, kTop - 6, x, bottom);
    svg += Text(x, bottom + 16, "middle", Format("%.4g", i * distance));
  }
  return svg;
}

}  // namespace

std::string DrawText(const Timetable& table, int width) {
  const int ranks = static_cast<int>(table.ranks.size());
  size_t name_width = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const char* prefix = "rank %d stage %d ";
    for (int stage : StagesOf(table, rank))
      name_width = std::max(name_width, Format(prefix, rank, stage).size());
  }
  const int room = std::max(20, width - static_cast<int>(name_width));
  std::string text = Summary(table) + "\n";
  if (table.end > 0) {
    const double scale = ColumnsPerTime(table, room);
    const int columns = static_cast<int>(std::lround(table.end * scale));
    for (int from = 0; from < columns; from += room) {
      const int count = std::min(room, columns - from);
      text += "\n" + std::string(name_width, ' ') + Ruler(scale, from, count) +
              "\n";
      for (int rank = 0; rank < ranks; ++rank) {
        bool first = true;
        for (int stage : StagesOf(table, rank)) {
          std::string name = first ? Format("rank %d ", rank) : "";
          const std::string own = Format("stage %d ", stage);
          name.resize(name_width - own.size(), ' ');
          const std::string row = TextRow(table.ranks[rank], stage,
                                          first ? '.' : ' ', scale, columns);
          text += name + own + row.substr(from, count) + "\n";
          first = false;
        }
      }
    }
  }
  text +=
      "\nF forward, B backward, I input gradient, W weight gradient, with "
      "the microbatch; . bubble\n";
  for (int rank = 0; rank < ranks; ++rank)
    text += RankSummary(table, rank) + "\n";
  return text;
}

std::string DrawSvg(const Timetable& table) {
  const double units = table.end > 0 ? table.end / ShortestCell(table) : 1;
  const double pixels = std::clamp(units * 20, 700.0, kMaxPixels);
  const double scale = table.end > 0 ? pixels / table.end : 1;
  std::vector<double> y_of_stage(table.rank_of_stage.size());
  std::string rows, cells;
  double y = kTop;
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    const std::vector<int> stages = StagesOf(table, static_cast<int>(rank));
    const double height = kRow * stages.size();
    rows += Rectangle(kLeft, y, pixels, height - 2, "fill=\"#e8e8e8\"/>\n");
    // Times when the rank computes are not bubbles, in any row of its stages.
    for (const TimedCell& timed : table.ranks[rank])
      rows += Rectangle(kLeft + timed.start * scale, y,
                        (timed.end - timed.start) * scale, height - 2,
                        "fill=\"#ffffff\"/>\n");
    for (int stage : stages) {
      rows += Text(kLeft - 8, y + kRow / 2 + 3, "end",
                   Format("rank %d, stage %d", static_cast<int>(rank), stage));
      y_of_stage[stage] = y;
      y += kRow;
    }
    rows += "<!-- " + RankSummary(table, static_cast<int>(rank)) + " -->\n";
    y += kGap;
  }
  for (const std::vector<TimedCell>& timed : table.ranks)
    for (const TimedCell& cell : timed)
      cells += SvgCell(cell, y_of_stage[cell.cell.stage], scale);
  for (const TimedTransfer& transfer : table.transfers) {
    const int stage = transfer.value.stage;
    const int reader =
        transfer.value.work == Work::kForward ? stage + 1 : stage - 1;
    cells += Format(
        "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
        "class=\"send\"/>\n",
        kLeft + transfer.start * scale, y_of_stage[stage] + kRow / 2,
        kLeft + transfer.end * scale, y_of_stage[reader] + kRow / 2);
  }
  const double width = kLeft + pixels + 30, height = y + 30;
  return Format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
             "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
             width, height, width, height) +
         "<style>text{font:11px sans-serif;fill:#222}.send{stroke:#555;"
         "stroke-width:0.8;opacity:0.6}.mark{stroke:#bbb;stroke-width:0.5}"
         "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
         Text(kLeft, 20, "start", Summary(table)) + SvgLegend() +
         SvgRuler(table, scale, y) + rows + cells + "</svg>\n";
}

}  // namespace partita::core
