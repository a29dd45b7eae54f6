// Copies are made outside the lock: by the sender into a target marked as being
// filled, or by the receiver from a letter that it owns.
#include "runtime/comm/mailbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace partita::comm {

Mailbox::Expectation* Mailbox::FirstOpen() {
  for (Expectation& expectation : expected_)
    if (expectation.state == Expectation::kOpen && !expectation.letter)
      return &expectation;
  return nullptr;
}

std::list<Mailbox::Expectation>::iterator Mailbox::Find(const char* target) {
  return std::find_if(
      expected_.begin(), expected_.end(),
      [&](const Expectation& other) { return other.target == target; });
}

void Mailbox::Send(uint64_t fingerprint, const std::string& what,
                   const char* data, int64_t bytes) {
  std::unique_lock<std::mutex> lock(mutex_);
  Expectation* open = FirstOpen();
  if (open != nullptr && open->fingerprint == fingerprint) {
    open->state = Expectation::kFilling;
    lock.unlock();
    std::memcpy(open->target, data, static_cast<size_t>(bytes));
    lock.lock();
    open->state = Expectation::kFilled;
    came_.notify_all();
    return;
  }
  Letter letter = {fingerprint, what, pool_.Take(bytes), bytes};
  lock.unlock();
  std::memcpy(letter.buffer.data.get(), data, static_cast<size_t>(bytes));
  lock.lock();
  // The message may be expected by now.
  open = FirstOpen();
  if (open != nullptr)
    open->letter = std::move(letter);
  else
    letters_.push_back(std::move(letter));
  came_.notify_all();
}

void Mailbox::Expect(uint64_t fingerprint, char* target) {
  const std::lock_guard<std::mutex> lock(mutex_);
  expected_.emplace_back();
  Expectation& expectation = expected_.back();
  expectation.fingerprint = fingerprint;
  expectation.target = target;
  if (letters_.empty()) return;
  expectation.letter = std::move(letters_.front());
  letters_.pop_front();
}

std::optional<std::string> Mailbox::Await(const char* target,
                                          std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto found = Find(target);
  if (found == expected_.end()) return std::nullopt;
  const auto has_come = [&] {
    return found->state == Expectation::kFilled || found->letter;
  };
  if (!came_.wait_for(lock, time, has_come)) return std::nullopt;
  Expectation expectation = std::move(*found);
  expected_.erase(found);
  if (!expectation.letter) return "";
  Letter& letter = *expectation.letter;
  lock.unlock();
  const bool is_it = letter.fingerprint == expectation.fingerprint;
  if (is_it)
    std::memcpy(expectation.target, letter.buffer.data.get(),
                static_cast<size_t>(letter.bytes));
  lock.lock();
  pool_.Give(std::move(letter.buffer));
  return is_it ? "" : letter.what;
}

void Mailbox::Forget() {
  std::unique_lock<std::mutex> lock(mutex_);
  // A copy in progress ends by itself.
  came_.wait(lock, [&] {
    return std::none_of(expected_.begin(), expected_.end(),
                        [](const Expectation& expectation) {
                          return expectation.state == Expectation::kFilling;
                        });
  });
  expected_.clear();
}

}  // namespace partita::comm
