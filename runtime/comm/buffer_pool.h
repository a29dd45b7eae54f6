// Memory of messages under way, kept for the next ones.
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

// A buffer serves messages of at least half its size, so that a small one does
// not occupy what a large one will need: of each size class it holds no more
// than was taken at one time. Used by one thread at a time.
class BufferPool {
 public:
  // At least so large.
  Buffer Take(int64_t bytes);
  void Give(Buffer buffer);

  int64_t held() const { return static_cast<int64_t>(buffers_.size()); }

 private:
  std::vector<Buffer> buffers_;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_BUFFER_POOL_H_
