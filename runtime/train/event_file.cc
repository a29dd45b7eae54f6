// Encodes protobuf by hand: the messages are few and small.
#include "runtime/train/event_file.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::train {
namespace {

// Fixed-size values are little endian, as are the supported machines.
template <typename T>
void AppendFixed(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>((value & 0x7f) | 0x80));
  out.push_back(static_cast<char>(value));
}

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void AppendTag(std::string& out, int field, WireType type) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | type);
}

void AppendBytes(std::string& out, int field, std::string_view bytes) {
  AppendTag(out, field, kBytes);
  AppendVarint(out, bytes.size());
  out.append(bytes);
}

std::string Event(double wall_time, int64_t step) {
  std::string event;
  AppendTag(event, 1, kFixed64);
  AppendFixed(event, wall_time);
  if (step == 0) return event;
  AppendTag(event, 2, kVarint);
  AppendVarint(event, static_cast<uint64_t>(step));
  return event;
}

uint32_t Masked(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

double Now() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < entries.size(); ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit)
        crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
      entries[i] = crc;
    }
    return entries;
  }();
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes)
    crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

std::string FrameRecord(std::string_view data) {
  std::string record;
  AppendFixed(record, static_cast<uint64_t>(data.size()));
  AppendFixed(record, Masked(Crc32c(record)));
  record.append(data);
  AppendFixed(record, Masked(Crc32c(data)));
  return record;
}

std::string VersionEvent(double wall_time) {
  std::string event = Event(wall_time, 0);
  AppendBytes(event, 3, "brain.Event:2");
  return event;
}

std::string StartEvent(double wall_time, int64_t step) {
  std::string session;
  AppendTag(session, 1, kVarint);
  AppendVarint(session, 1);
  std::string event = Event(wall_time, step);
  AppendBytes(event, 7, session);
  return event;
}

std::string ScalarsEvent(
    double wall_time, int64_t step,
    const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [name, number] : scalars) {
    std::string value;
    AppendBytes(value, 1, name);
    AppendTag(value, 2, kFixed32);
    AppendFixed(value, static_cast<float>(number));
    AppendBytes(summary, 1, value);
  }
  std::string event = Event(wall_time, step);
  AppendBytes(event, 5, summary);
  return event;
}

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Create(
    const std::string& folder, int64_t last_step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": cannot create the folder: ", error.message()));
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) != 0) std::strcpy(host, "localhost");
  const double now = Now();
  // Names sort by time, as readers order sessions by name.
  PARTITA_ASSIGN_OR_RETURN(
      std::unique_ptr<AppendFile> file,
      AppendFile::Open(
          absl::StrCat(folder, "/events.out.tfevents.",
                       absl::Dec(static_cast<int64_t>(now), absl::kZeroPad10),
                       ".", host, ".", getpid(), ".", last_step)));
  PARTITA_RETURN_IF_ERROR(file->Append(FrameRecord(VersionEvent(now))));
  PARTITA_RETURN_IF_ERROR(
      file->Append(FrameRecord(StartEvent(now, last_step + 1))));
  return std::unique_ptr<EventFile>(new EventFile(std::move(file)));
}

absl::Status EventFile::OnStep(const StepRecord& record) {
  std::vector<std::pair<std::string, double>> scalars = {{"lr", record.rate}};
  if (!std::isnan(record.loss))
    scalars.insert(scalars.begin(), {"loss", record.loss});
  const auto add = [&](const char* name, int64_t count) {
    if (count > 0 && record.seconds > 0)
      scalars.emplace_back(name, static_cast<double>(count) / record.seconds);
  };
  add("examples_per_second", record.examples);
  add("tokens_per_second", record.tokens);
  scalars.insert(scalars.end(), record.scalars.begin(), record.scalars.end());
  return file_->Append(FrameRecord(ScalarsEvent(Now(), record.step, scalars)));
}

}  // namespace partita::train
