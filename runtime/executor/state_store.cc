// The queue executes batches in order, so a read sees all writes before it, and
// a buffer's old content is written before new content is read into it.
#include "runtime/executor/state_store.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/quantity.h"
#include "runtime/base/status_macros.h"

namespace partita::executor {

using program::kStateBuffers;
using program::kStatePage;
using program::StateWindow;

absl::StatusOr<std::unique_ptr<StateStore>> StateStore::Create(
    const StateStoreOptions& options, const std::string& name,
    const std::map<size_t, int64_t>& bytes) {
  std::unique_ptr<StateStore> store(new StateStore());
  store->options_ = options;
  for (const auto& [parameter, size] : bytes) {
    store->extents_[parameter] = {store->file_bytes_, size};
    store->file_bytes_ += program::RoundToPage(size);
  }
  if (store->file_bytes_ == 0) return store;
  PARTITA_ASSIGN_OR_RETURN(store->file_, StateFile::Create(options.folder, name,
                                                           store->file_bytes_));
  return store;
}

absl::Status StateStore::Move(size_t parameter, char* to, const char* from) {
  constexpr int64_t kPart = int64_t{1} << 20;
  static_assert(kPart % kStatePage == 0);
  const Extent& extent = extents_.at(parameter);
  const int64_t part = std::min(kPart, program::RoundToPage(extent.bytes));
  const std::unique_ptr<char, decltype(&std::free)> buffer(
      static_cast<char*>(std::aligned_alloc(static_cast<size_t>(kStatePage),
                                            static_cast<size_t>(part))),
      &std::free);
  if (buffer == nullptr)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", part, " bytes of a state"));
  std::memset(buffer.get(), 0, static_cast<size_t>(part));
  base::FileQueue& queue = file_->queue();
  for (int64_t done = 0; done < extent.bytes; done += part) {
    const auto count = static_cast<size_t>(std::min(part, extent.bytes - done));
    const base::FileTransfer transfer = {
        extent.offset + done, buffer.get(),
        program::RoundToPage(static_cast<int64_t>(count))};
    if (from != nullptr) std::memcpy(buffer.get(), from + done, count);
    PARTITA_RETURN_IF_ERROR(queue.Wait(
        from != nullptr ? queue.Write({transfer}) : queue.Read({transfer})));
    if (to != nullptr) std::memcpy(to + done, buffer.get(), count);
  }
  return absl::OkStatus();
}

absl::Status StateStore::Read(size_t parameter, void* host) {
  return Move(parameter, static_cast<char*>(host), nullptr);
}

absl::Status StateStore::Write(size_t parameter, const void* host) {
  return Move(parameter, nullptr, static_cast<const char*>(host));
}

absl::Status StateStore::Plan(const std::vector<std::vector<int>>& units,
                              device::Device& device) {
  std::vector<int64_t> bytes(extents_.empty() ? 0
                                              : extents_.rbegin()->first + 1);
  for (const auto& [parameter, extent] : extents_)
    bytes[parameter] = extent.bytes;
  plan_ = program::PlanStateWindows(units, bytes, options_.buffer_bytes);
  if (options_.buffer_bytes > 0 && plan_.Bytes() > options_.buffer_bytes)
    return absl::FailedPreconditionError(absl::StrCat(
        "expected at least ", plan_.Bytes(),
        " bytes for the buffers of optimizer states (", kStateBuffers,
        " times the states of the largest tensor), found ",
        options_.buffer_bytes,
        "; raise --offload-buffers, or the plan's offload: buffers, or leave "
        "it out"));
  for (const int64_t size : plan_.buffer_bytes) {
    PARTITA_ASSIGN_OR_RETURN(
        device::Allocation buffer,
        device::Allocation::Make(device, size, /*host=*/true));
    buffers_.push_back(std::move(buffer));
  }
  reads_.resize(plan_.windows.size());
  return absl::OkStatus();
}

char* StateStore::AddressOf(int window, int parameter) const {
  const StateWindow& found = plan_.windows[static_cast<size_t>(window)];
  const auto place =
      std::lower_bound(found.states.begin(), found.states.end(), parameter) -
      found.states.begin();
  return buffers_[static_cast<size_t>(window % kStateBuffers)].data() +
         found.offsets[static_cast<size_t>(place)];
}

std::vector<base::FileTransfer> StateStore::TransfersOf(int window) const {
  std::vector<base::FileTransfer> transfers;
  for (const int state : plan_.windows[static_cast<size_t>(window)].states) {
    const Extent& extent = extents_.at(static_cast<size_t>(state));
    transfers.push_back({extent.offset, AddressOf(window, state),
                         program::RoundToPage(extent.bytes)});
  }
  return transfers;
}

bool StateStore::Share(int a, int b) const {
  const std::vector<int>& in_a = plan_.windows[static_cast<size_t>(a)].states;
  const std::vector<int>& in_b = plan_.windows[static_cast<size_t>(b)].states;
  return std::any_of(in_a.begin(), in_a.end(), [&](int state) {
    return std::binary_search(in_b.begin(), in_b.end(), state);
  });
}

// Reads windows into free buffers, up to one that has a state in common with a
// window that is not written back yet.
void StateStore::ReadAhead() {
  for (; next_read_ < std::min(windows(), left_ + kStateBuffers);
       ++next_read_) {
    for (int before = left_; before < next_read_; ++before)
      if (Share(before, next_read_)) return;
    reads_[static_cast<size_t>(next_read_)] =
        file_->queue().Read(TransfersOf(next_read_));
  }
}

void StateStore::BeginRun() {
  next_read_ = left_ = 0;
  ReadAhead();
}

absl::Status StateStore::Enter(int window) {
  PARTITA_RETURN_IF_ERROR(
      file_->queue().Wait(reads_[static_cast<size_t>(window)]));
  return file_->CheckLength();
}

void StateStore::Leave(int window) {
  file_->queue().Write(TransfersOf(window));
  left_ = window + 1;
  ReadAhead();
}

int64_t StateStore::BufferBytes() const {
  int64_t bytes = 0;
  for (const device::Allocation& buffer : buffers_) bytes += buffer.bytes();
  return bytes;
}

}  // namespace partita::executor
