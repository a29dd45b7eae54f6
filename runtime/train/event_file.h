// The log of a run for TensorBoard: a file of events.
//
// The file is a sequence of records, little endian:
//   uint64  length
//   uint32  masked CRC-32C of the eight bytes of length
//   char    data[length]
//   uint32  masked CRC-32C of data
// where masked(c) = ((c >> 15) | (c << 17)) + 0xa282ead8. Data is a protobuf
// message Event:
//   1 double wall_time, 2 int64 step, 3 string file_version,
//   5 Summary summary {repeated 1 Value {1 string tag, 2 float simple_value}},
//   7 SessionLog {1 enum status: START = 1}
// The first one has file_version "brain.Event:2".
// (tensorflow/core/lib/io/record_writer.h and core/util/event.proto describe
// both.)
#ifndef PARTITA_RUNTIME_TRAIN_EVENT_FILE_H_
#define PARTITA_RUNTIME_TRAIN_EVENT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/train/append_file.h"
#include "runtime/train/record.h"

namespace partita::train {

// CRC-32C: the checksum of Castagnoli (polynomial 0x1edc6f41, reflected).
uint32_t Crc32c(std::string_view bytes);

// Encodes one record of the file.
std::string FrameRecord(std::string_view data);

// Encode events; wall times are in seconds since 1970.
std::string VersionEvent(double wall_time);
// Readers discard data of older files in the folder from this step on.
std::string StartEvent(double wall_time, int64_t step);
std::string ScalarsEvent(
    double wall_time, int64_t step,
    const std::vector<std::pair<std::string, double>>& scalars);

// Writes the loss, the learning rate and speeds of every step. Used by one
// thread.
class EventFile : public Observer {
 public:
  // Creates a new file for this session, and its folder if it is missing. The
  // run continues after step `last_step`.
  static absl::StatusOr<std::unique_ptr<EventFile>> Create(
      const std::string& folder, int64_t last_step);

  const std::string& path() const { return file_->path(); }
  absl::Status OnStep(const StepRecord& record) override;

 private:
  explicit EventFile(std::unique_ptr<AppendFile> file)
      : file_(std::move(file)) {}

  const std::unique_ptr<AppendFile> file_;
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_EVENT_FILE_H_
