// With io_uring, a batch keeps up to kDepth parts of at most kPart bytes in
// flight.
#include "runtime/base/file_queue.h"

#include <errno.h>
#include <liburing.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_error.h"
#include "runtime/base/status_macros.h"

namespace partita::base {
namespace {

constexpr unsigned kDepth = 32;
constexpr int64_t kPart = int64_t{1} << 20;
// How often the ring may say that it is busy, with a pause after each time,
// before system calls take over.
constexpr int kBusyTries = 1000;
constexpr auto kBusyPause = std::chrono::milliseconds(1);

struct Batch {
  bool writes = false;
  std::vector<FileTransfer> transfers;
};

std::deque<FileTransfer> PartsOf(const std::vector<FileTransfer>& transfers) {
  std::deque<FileTransfer> parts;
  for (const FileTransfer& whole : transfers)
    for (int64_t done = 0; done < whole.bytes; done += kPart)
      parts.push_back({whole.offset + done, whole.data + done,
                       std::min(kPart, whole.bytes - done)});
  return parts;
}

// Removes the first `done` bytes.
void Advance(FileTransfer& part, int64_t done) {
  part.offset += done;
  part.data += done;
  part.bytes -= done;
}

}  // namespace

class FileQueue::Impl {
 public:
  Impl(int descriptor, std::string path, Method method)
      : descriptor_(descriptor), path_(std::move(path)) {
    if (method == Method::kBest) {
      ring_.emplace();
      if (io_uring_queue_init(kDepth, &*ring_, 0) != 0) ring_.reset();
    }
    uses_ring_ = ring_.has_value();
  }

  ~Impl() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (ring_) io_uring_queue_exit(&*ring_);
  }

  absl::Status Start() {
    try {
      thread_ = std::thread([this] { Work(); });
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path_, ": cannot start the thread that reads and ",
                       "writes: ", error.what()));
    }
    return absl::OkStatus();
  }

  int64_t Add(Batch batch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    batches_.push_back(std::move(batch));
    changed_.notify_all();
    return ++added_;
  }

  absl::Status Wait(int64_t batch) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= batch; });
    return status_;
  }

  bool UsesRing() const { return uses_ring_; }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ends_ || !batches_.empty(); });
      if (batches_.empty()) return;
      const Batch batch = std::move(batches_.front());
      batches_.pop_front();
      if (status_.ok()) {
        lock.unlock();
        const absl::Status status = Run(batch);
        lock.lock();
        status_.Update(status);
      }
      ++done_;
      changed_.notify_all();
    }
  }

  absl::Status Run(const Batch& batch) {
    std::deque<FileTransfer> parts = PartsOf(batch.transfers);
    if (ring_) PARTITA_RETURN_IF_ERROR(RunInRing(batch.writes, parts));
    // Executes the parts that the ring refused, or all parts.
    for (FileTransfer part : parts)
      while (part.bytes > 0) {
        const auto size = static_cast<size_t>(part.bytes);
        const ssize_t done =
            batch.writes ? pwrite(descriptor_, part.data, size, part.offset)
                         : pread(descriptor_, part.data, size, part.offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return Failed(batch.writes, part, done < 0 ? errno : 0);
        Advance(part, done);
      }
    return absl::OkStatus();
  }

  // Executes `parts` and removes them. If the kernel lacks the operations or
  // refuses them, the ring ends and the remaining parts stay in the list.
  absl::Status RunInRing(bool writes, std::deque<FileTransfer>& parts) {
    std::vector<FileTransfer> in_flight(kDepth);
    std::vector<size_t> free;
    for (size_t i = 0; i < kDepth; ++i) free.push_back(i);
    // Places of entries that the kernel has not taken yet. It takes them in
    // order.
    std::deque<size_t> queued;
    absl::Status status;
    bool refused = false;
    int busy = 0;
    // Even after an error, waits for all parts in flight: they use the memory.
    while (free.size() < kDepth ||
           (status.ok() && !refused && !parts.empty())) {
      while (status.ok() && !refused && !parts.empty() && !free.empty()) {
        io_uring_sqe* const entry = io_uring_get_sqe(&*ring_);
        if (entry == nullptr) break;
        const size_t place = free.back();
        free.pop_back();
        const FileTransfer part = in_flight[place] = parts.front();
        parts.pop_front();
        const auto size = static_cast<unsigned>(part.bytes);
        const auto offset = static_cast<uint64_t>(part.offset);
        if (writes)
          io_uring_prep_write(entry, descriptor_, part.data, size, offset);
        else
          io_uring_prep_read(entry, descriptor_, part.data, size, offset);
        io_uring_sqe_set_data64(entry, place);
        queued.push_back(place);
      }
      if (refused) {
        // The kernel never takes these.
        for (const size_t place : queued) {
          parts.push_back(in_flight[place]);
          free.push_back(place);
        }
        queued.clear();
        if (free.size() < kDepth) AwaitOne();
      } else if (!Submit(queued, busy)) {
        refused = true;
        continue;
      }
      io_uring_cqe* entry = nullptr;
      while (io_uring_peek_cqe(&*ring_, &entry) == 0) {
        const auto place = static_cast<size_t>(io_uring_cqe_get_data64(entry));
        const int done = entry->res;
        io_uring_cqe_seen(&*ring_, entry);
        free.push_back(place);
        FileTransfer& part = in_flight[place];
        if (done > 0) busy = 0;
        if (done == -EINVAL || done == -EOPNOTSUPP) {
          // Kernels before 5.6 lack these operations. The system calls report
          // any other cause.
          refused = true;
          parts.push_back(part);
        } else if (done == -EINTR || done == -EAGAIN) {
          parts.push_back(part);
          if (++busy > kBusyTries) refused = true;
        } else if (done <= 0) {
          status.Update(Failed(writes, part, -done));
        } else if (done < part.bytes) {
          Advance(part, done);
          parts.push_back(part);
        }
      }
    }
    if (refused) {
      io_uring_queue_exit(&*ring_);
      ring_.reset();
    }
    return status;
  }

  // Gives the queued entries to the kernel, removes those that it takes, and
  // waits for an operation. False if the ring cannot go on.
  bool Submit(std::deque<size_t>& queued, int& busy) {
    const int submitted = io_uring_submit_and_wait(&*ring_, 1);
    while (queued.size() > io_uring_sq_ready(&*ring_)) queued.pop_front();
    if (submitted >= 0 || submitted == -EINTR) return true;
    if ((submitted != -EAGAIN && submitted != -EBUSY) || ++busy > kBusyTries)
      return false;
    std::this_thread::sleep_for(kBusyPause);
    return true;
  }

  // Waits for an operation in flight, without giving entries to the kernel. If
  // the kernel refuses even that, the caller looks again after a pause.
  void AwaitOne() {
    io_uring_cqe* entry = nullptr;
    if (io_uring_wait_cqe(&*ring_, &entry) != 0)
      std::this_thread::sleep_for(kBusyPause);
  }

  // `error` 0: nothing was read or written. With O_DIRECT, a read across the
  // end of the file may fail as invalid instead.
  absl::Status Failed(bool writes, const FileTransfer& part, int error) const {
    struct stat info;
    if (!writes && fstat(descriptor_, &info) == 0 &&
        info.st_size < part.offset + part.bytes)
      return absl::DataLossError(absl::StrCat(
          path_, ": expected ", part.bytes, " bytes at byte ", part.offset,
          ", but the file has ", static_cast<int64_t>(info.st_size),
          "; another process changed its length"));
    return FileError(
        absl::StrCat(path_, ": cannot ", writes ? "write" : "read", " ",
                     part.bytes, " bytes at byte ", part.offset),
        error == 0 ? ENOSPC : error);
  }

  const int descriptor_;
  const std::string path_;
  std::optional<io_uring> ring_;  // used by the thread alone
  bool uses_ring_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> batches_;
  int64_t added_ = 0, done_ = 0;
  bool ends_ = false;
  absl::Status status_;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<FileQueue>> FileQueue::Make(int descriptor,
                                                           std::string path,
                                                           Method method) {
  auto impl = std::make_unique<Impl>(descriptor, std::move(path), method);
  PARTITA_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<FileQueue>(new FileQueue(std::move(impl)));
}

FileQueue::FileQueue(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FileQueue::~FileQueue() = default;

int64_t FileQueue::Read(std::vector<FileTransfer> batch) {
  return impl_->Add({false, std::move(batch)});
}

int64_t FileQueue::Write(std::vector<FileTransfer> batch) {
  return impl_->Add({true, std::move(batch)});
}

absl::Status FileQueue::Wait(int64_t batch) { return impl_->Wait(batch); }

bool FileQueue::UsesRing() const { return impl_->UsesRing(); }

}  // namespace partita::base
