// Reads and writes parts of a file in the background.
#ifndef PARTITA_RUNTIME_BASE_FILE_QUEUE_H_
#define PARTITA_RUNTIME_BASE_FILE_QUEUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace partita::base {

// Bytes [offset, offset + bytes) of the file, from or to `data`.
struct FileTransfer {
  int64_t offset = 0;
  char* data = nullptr;
  int64_t bytes = 0;
};

// A thread that executes batches in the order in which they were added, so that
// a read sees the writes before it. The transfers of a batch are unordered and
// must not overlap. Methods may be called from one thread at a time.
class FileQueue {
 public:
  enum class Method {
    kBest,    // io_uring, or kSystem if the kernel refuses it, as containers do
    kSystem,  // pread and pwrite
  };

  // `descriptor` must outlive the queue; errors name `path`. With O_DIRECT, the
  // caller aligns offsets, sizes and memory. ResourceExhausted if no thread can
  // be started.
  static absl::StatusOr<std::unique_ptr<FileQueue>> Make(
      int descriptor, std::string path, Method method = Method::kBest);
  // Waits for all batches.
  ~FileQueue();
  FileQueue(const FileQueue&) = delete;
  FileQueue& operator=(const FileQueue&) = delete;

  // Adds a batch and returns its number, counted from 1. The memory is in use
  // until Wait.
  int64_t Read(std::vector<FileTransfer> batch);
  int64_t Write(std::vector<FileTransfer> batch);

  // Waits until this batch and all before it are done. Returns the first error
  // of the queue, after which it executes nothing: a system call that failed,
  // or DataLoss for a file that is shorter than it was.
  absl::Status Wait(int64_t batch);

  // True if the queue began with io_uring. System calls take over if the kernel
  // refuses the ring's operations later.
  bool UsesRing() const;

 private:
  class Impl;
  explicit FileQueue(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_FILE_QUEUE_H_
