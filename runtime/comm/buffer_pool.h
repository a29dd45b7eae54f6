// Reuses the memory of messages in flight.
#ifndef PARTITA_RUNTIME_COMM_BUFFER_POOL_H_
#define PARTITA_RUNTIME_COMM_BUFFER_POOL_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace partita::comm {

struct FreeMemory {
  void operator()(char* memory) const { std::free(memory); }
};

struct Buffer {
  std::unique_ptr<char, FreeMemory> data;  // content undefined
  int64_t capacity = 0;                    // bytes
};

// A buffer serves only messages of at least half its size, so small messages do
// not occupy large buffers. Per size class, the pool holds no more buffers than
// were in use at one time. Used by one thread at a time.
class BufferPool {
 public:
  // Returns a buffer of at least `bytes`.
  Buffer Take(int64_t bytes);
  void Give(Buffer buffer);

  int64_t held() const { return static_cast<int64_t>(buffers_.size()); }

 private:
  std::vector<Buffer> buffers_;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_BUFFER_POOL_H_
