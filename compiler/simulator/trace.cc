// Writes one event per line, so that a trace is also readable as text.
#include "compiler/simulator/trace.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/simulator/memory.h"

namespace partita::simulator {
namespace {

constexpr double kMicro = 1e6;
enum Thread { kWork = 1, kCollectives = 2, kLink = 3 };

Thread ThreadOf(Span::Kind kind) {
  if (kind == Span::Kind::kTransfer) return kLink;
  return kind == Span::Kind::kOverlapped ? kCollectives : kWork;
}

const char* CategoryOf(Span::Kind kind) {
  switch (kind) {
    case Span::Kind::kCompute:
      return "compute";
    case Span::Kind::kCollective:
      return "collective";
    case Span::Kind::kOverlapped:
      return "overlapped";
    case Span::Kind::kTransfer:
      return "transfer";
    case Span::Kind::kReceive:
      return "receive";
    case Span::Kind::kWait:
      return "wait";
  }
  return "";
}

// Colours that both viewers support.
const char* ColourOf(Span::Kind kind) {
  switch (kind) {
    case Span::Kind::kCompute:
      return "thread_state_running";
    case Span::Kind::kWait:
      return "grey";
    default:
      return "thread_state_iowait";
  }
}

class TraceWriter {
 public:
  explicit TraceWriter(const Simulation& simulation)
      : simulation_(simulation) {}

  void AddNames(size_t device_class) {
    Meta("process_name", device_class, 0, Describe(simulation_, device_class));
    Meta("thread_name", device_class, kWork, "computes");
    Meta("thread_name", device_class, kCollectives, "collectives");
    Meta("thread_name", device_class, kLink, "sends");
    Append(
        absl::StrFormat("{\"ph\":\"M\",\"name\":\"process_sort_index\","
                        "\"pid\":%d,\"args\":{\"sort_index\":%d}}",
                        device_class, device_class));
  }

  void AddSpan(const Span& span) {
    std::string call;
    if (span.call >= 0)
      call = absl::StrCat(",\"args\":{\"in\":", NameOf(span.call), "}");
    Append(absl::StrFormat(
        "{\"ph\":\"X\",\"name\":%s,\"cat\":\"%s\",\"cname\":\"%s\",\"pid\":%d,"
        "\"tid\":%d,\"ts\":%.4f,\"dur\":%.4f%s}",
        NameOf(span.name), CategoryOf(span.kind), ColourOf(span.kind),
        span.device_class, ThreadOf(span.kind), span.start * kMicro,
        (span.end - span.start) * kMicro, call));
  }

  void AddMemory(size_t device_class, const program::Program& program) {
    const int entry = simulation_.classes[device_class].entry;
    const DeviceMemory memory = MemoryOf(program, entry);
    const std::vector<int64_t> alive = AliveBytes(program, entry);
    const auto& main = simulation_.main[device_class];
    for (size_t i = 0; i < main.size(); ++i) {
      const size_t end =
          i + 1 < main.size() ? main[i + 1].instruction : alive.size();
      int64_t most = 0;
      for (size_t k = main[i].instruction; k < end; ++k)
        most = std::max(most, alive[k]);
      Append(absl::StrFormat(
          "{\"ph\":\"C\",\"name\":\"memory\",\"pid\":%d,"
          "\"ts\":%.4f,\"args\":{\"bytes\":%d}}",
          device_class, main[i].time * kMicro, memory.fixed() + most));
    }
  }

  std::string Finish() {
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" + events_ + "\n]}\n";
  }

 private:
  std::string NameOf(int name) const {
    return JsonString(simulation_.names[static_cast<size_t>(name)]);
  }

  void Meta(const std::string& what, size_t device_class, int thread,
            const std::string& name) {
    Append(
        absl::StrFormat("{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":"
                        "%d,\"args\":{\"name\":%s}}",
                        what, device_class, thread, JsonString(name)));
  }

  void Append(const std::string& event) {
    absl::StrAppend(&events_, events_.empty() ? "\n" : ",\n", event);
  }

  const Simulation& simulation_;
  std::string events_;
};

}  // namespace

std::string JsonString(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      absl::StrAppend(&result, absl::StrFormat("\\u%04x", c));
    else
      result += c;
  }
  return result + "\"";
}

std::string Describe(const Simulation& simulation, size_t device_class) {
  const DeviceClass& described = simulation.classes[device_class];
  int entries = 0;
  for (const DeviceClass& other : simulation.classes)
    entries = std::max(entries, other.entry + 1);
  std::string text = absl::StrCat("rank ", described.rank);
  if (described.devices > 1)
    absl::StrAppend(&text, " and ", described.devices - 1, " like it");
  if (entries > 1) absl::StrAppend(&text, ", stage ", described.entry);
  return text;
}

std::string WriteTrace(const Simulation& simulation,
                       const program::Program& program) {
  TraceWriter writer(simulation);
  for (size_t i = 0; i < simulation.classes.size(); ++i) writer.AddNames(i);
  for (const Span& span : simulation.spans) writer.AddSpan(span);
  for (size_t i = 0; i < simulation.classes.size(); ++i)
    writer.AddMemory(i, program);
  return writer.Finish();
}

}  // namespace partita::simulator
