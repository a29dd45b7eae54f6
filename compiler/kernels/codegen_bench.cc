// Speed of generated kernels on one thread, in GB/s or GFLOP/s.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

#include "compiler/kernels/codegen_fixture.h"

namespace partita::kernels {
namespace {

struct Bench {
  std::string name;
  std::string text;
  double work;       // bytes or operations
  const char* unit;  // GB/s or GFLOP/s
};

std::string replaceAll(
    std::string text,
    const std::vector<std::pair<std::string, std::string>>& pairs) {
  for (const auto& [from, to] : pairs)
    for (size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  return text;
}

Bench gelu(int64_t n) {
  const char* text = R"(func.func @k(%x: T) -> T {
     %h = arith.constant dense<0.5> : T
     %o = arith.constant dense<1.0> : T
     %s = arith.constant dense<0.70710678> : T
     %m = arith.mulf %x, %s : T
     %e = math.erf %m : T
     %p = arith.addf %e, %o : T
     %q = arith.mulf %p, %x : T
     %r = arith.mulf %q, %h : T return %r : T })";
  return {"gelu " + std::to_string(n),
          replaceAll(text, {{"T", "tensor<" + std::to_string(n) + "xf32>"}}),
          8.0 * n, "GB/s"};
}

Bench geluTanh(int64_t n) {
  const char* text = R"(func.func @k(%x: T) -> T {
     %h = arith.constant dense<0.5> : T
     %o = arith.constant dense<1.0> : T
     %s = arith.constant dense<0.79788456> : T
     %c = arith.constant dense<0.044715> : T
     %x2 = arith.mulf %x, %x : T
     %x3 = arith.mulf %x2, %x : T
     %cx = arith.mulf %x3, %c : T
     %in = arith.addf %cx, %x : T
     %m = arith.mulf %in, %s : T
     %e = math.tanh %m : T
     %p = arith.addf %e, %o : T
     %q = arith.mulf %p, %x : T
     %r = arith.mulf %q, %h : T return %r : T })";
  return {"gelu (tanh) " + std::to_string(n),
          replaceAll(text, {{"T", "tensor<" + std::to_string(n) + "xf32>"}}),
          8.0 * n, "GB/s"};
}

Bench layerNorm(int64_t m, int64_t n) {
  const char* text = R"(func.func @k(%a: T, %g: V, %b: V) -> T {
     %r = nn.layer_norm %a scale(%g : V) bias(%b : V) axis = 1 epsilon = 1.0e-5 : T return %r : T })";
  return {"layer_norm " + std::to_string(m) + "x" + std::to_string(n),
          replaceAll(text, {{"T", "tensor<" + std::to_string(m) + "x" +
                                      std::to_string(n) + "xf32>"},
                            {"V", "tensor<" + std::to_string(n) + "xf32>"}}),
          8.0 * m * n, "GB/s"};
}

Bench residualLayerNorm(int64_t m, int64_t n) {
  const char* text =
      R"(func.func @k(%x: T, %y: T, %c: V, %g: V, %b: V) -> (T, T) {
     %cb = nn.broadcast %c dims = [1] : V -> T
     %t = arith.addf %y, %cb : T
     %s = arith.addf %x, %t : T
     %r = nn.layer_norm %s scale(%g : V) bias(%b : V) axis = 1 epsilon = 1.0e-5 : T return %s, %r : T, T })";
  return {"bias + residual + layer_norm " + std::to_string(m) + "x" +
              std::to_string(n),
          replaceAll(text, {{"T", "tensor<" + std::to_string(m) + "x" +
                                      std::to_string(n) + "xf32>"},
                            {"V", "tensor<" + std::to_string(n) + "xf32>"}}),
          16.0 * m * n, "GB/s"};
}

Bench softmax(int64_t m, int64_t n) {
  const char* text =
      "func.func @k(%a: T) -> T { %r = nn.softmax %a axis = 1 : T return %r : "
      "T }";
  return {"softmax " + std::to_string(m) + "x" + std::to_string(n),
          replaceAll(text, {{"T", "tensor<" + std::to_string(m) + "x" +
                                      std::to_string(n) + "xf32>"}}),
          8.0 * m * n, "GB/s"};
}

// Masks of attention; 0 is none.
struct Masks {
  bool causal = false;
  int64_t window = 0;
  int64_t document = 0;  // tokens of each document
  int64_t sinks = 0;     // beside the window
  // Blocks of 64 keys that a block of queries sees; null: all.
  bool (*blocks)(int64_t row, int64_t column) = nullptr;
  const char* pattern = "";  // name of the blocks
};

constexpr int64_t kBlock = 64;

// BigBird: neighbours, the first and the last block, and three others.
bool bigBird(int64_t row, int64_t column) {
  const bool is_near = std::abs(row - column) <= 1;
  return is_near || column == 0 || column == 127 || row == 0 || row == 127 ||
         (row * 37 + 11) % 128 == column || (row * 53 + 29) % 128 == column ||
         (row * 91 + 71) % 128 == column;
}

// Strided: the last 4 blocks, and every 8th one before.
bool strided(int64_t row, int64_t column) {
  return column <= row && (row - column < 4 || column % 8 == 7);
}

// Fixed: the blocks of the query's group of 16, and the last one of each group.
bool fixed(int64_t row, int64_t column) {
  return row / 16 == column / 16 || column % 16 == 15;
}

double keptShare(const Masks& masks, int64_t l) {
  double kept = 0;
  for (int64_t row = 0; row < l / kBlock; ++row)
    for (int64_t column = 0; column < l / kBlock; ++column)
      kept += masks.blocks(row, column);
  return kept * kBlock * kBlock / static_cast<double>(l * l);
}

std::string blocksOf(const Masks& masks, int64_t l) {
  const int64_t count = l / kBlock;
  std::string rows;
  for (int64_t row = 0; row < count; ++row) {
    rows += row > 0 ? ", [" : "[";
    for (int64_t column = 0; column < count; ++column)
      rows += std::string(column > 0 ? ", " : "") +
              (masks.blocks(row, column) ? "1" : "0");
    rows += "]";
  }
  const std::string size = std::to_string(count);
  return "blocks = dense<[[" + rows + "]]> : tensor<1x" + size + "x" + size +
         "xi1> block_size = " + std::to_string(kBlock);
}

// A text of attention or its gradient on tensors T.
std::string withMasks(std::string text, const Masks& masks, int64_t b,
                      int64_t l, const std::string& type) {
  const bool segments = masks.document > 0;
  return replaceAll(
      text,
      {{"CAUSAL", masks.causal ? "causal_offset = 0" : ""},
       {"WINDOW",
        masks.window > 0 ? "window = " + std::to_string(masks.window) : ""},
       {"SINKS",
        masks.sinks > 0 ? "sinks = " + std::to_string(masks.sinks) : ""},
       {"BLOCKS", masks.blocks ? blocksOf(masks, l) : ""},
       {"TOKENS", segments ? "%i = nn.iota dim = 1 : D %c = arith.constant "
                             "dense<" +
                                 std::to_string(masks.document) +
                                 "> : D %s = arith.divui %i, %c : D"
                           : ""},
       {"OF_TYPE", segments ? ", D, D" : ""},
       {"SEGMENTS", segments ? "segments(%s, %s)" : ""},
       {" D",
        " tensor<" + std::to_string(b) + "x" + std::to_string(l) + "xi32>"},
       {"T", type}});
}

std::string typeOf(int64_t b, int64_t n, int64_t l, int64_t h) {
  return "tensor<" + std::to_string(b) + "x" + std::to_string(n) + "x" +
         std::to_string(l) + "x" + std::to_string(h) + "xf32>";
}

Bench attention(int64_t b, int64_t n, int64_t l, int64_t h,
                const Masks& masks) {
  const char* text = R"(func.func @k(%q: T, %k: T, %v: T) -> T { TOKENS
     %r = nn.attention %q, %k, %v SEGMENTS scale = 1.25e-1 CAUSAL WINDOW SINKS BLOCKS : (T, T, T OF_TYPE) -> T return %r : T })";
  std::string name = "attention B" + std::to_string(b) + " N" +
                     std::to_string(n) + " L" + std::to_string(l) + " h" +
                     std::to_string(h);
  if (masks.causal) name += " causal";
  if (masks.window > 0) name += " window " + std::to_string(masks.window);
  if (masks.sinks > 0) name += " sinks " + std::to_string(masks.sinks);
  if (masks.blocks) {
    char share[32];
    std::snprintf(share, sizeof share, " (%.3f of blocks)",
                  keptShare(masks, l));
    name += std::string(" ") + masks.pattern + share;
  }
  if (masks.document > 0)
    name += " documents of " + std::to_string(masks.document);
  double pairs = static_cast<double>(l) * l * (masks.causal ? 0.5 : 1);
  if (masks.document > 0) pairs *= static_cast<double>(masks.document) / l;
  if (masks.window > 0)
    pairs = static_cast<double>(l) *
            static_cast<double>(masks.window + masks.sinks);
  if (masks.blocks) pairs = static_cast<double>(l) * l * keptShare(masks, l);
  return {name, withMasks(text, masks, b, l, typeOf(b, n, l, h)),
          4.0 * b * n * pairs * h, "GFLOP/s"};
}

// The gradient takes five products, the forward pass two.
Bench attentionGrad(int64_t b, int64_t n, int64_t l, int64_t h,
                    const Masks& masks) {
  Bench bench = attention(b, n, l, h, masks);
  const char* text =
      R"(func.func @k(%q: T, %k: T, %v: T, %y: T, %g: T) -> (T, T, T) { TOKENS
     %r:3 = nn.attention_grad %q, %k, %v, %y, %g SEGMENTS scale = 1.25e-1 CAUSAL WINDOW SINKS BLOCKS : (T, T, T, T, T OF_TYPE) -> (T, T, T) return %r#0, %r#1, %r#2 : T, T, T })";
  return {"grad of " + bench.name,
          withMasks(text, masks, b, l, typeOf(b, n, l, h)), 2.5 * bench.work,
          bench.unit};
}

Bench matrixVector(int64_t k, int64_t n, bool transposed) {
  const char* text =
      R"(func.func @k(%x: tensor<1xKxf32>, %w: tensor<Wxf32>) -> tensor<1xNxf32> {
     %r = nn.dot_general %x, %w contract = [1] x [C] : tensor<1xKxf32>, tensor<Wxf32> -> tensor<1xNxf32> return %r : tensor<1xNxf32> })";
  std::string ks = std::to_string(k), ns = std::to_string(n);
  return {"1x" + ks + "x" + ns + (transposed ? " [N, K]" : " [K, N]"),
          replaceAll(text, {{"W", transposed ? ns + "x" + ks : ks + "x" + ns},
                            {"K", ks},
                            {"N", ns},
                            {"[C]", transposed ? "[1]" : "[0]"}}),
          4.0 * k * n, "GB/s"};
}

// The gradient of an embedding with ten different rows. Counts the bytes that
// must move.
Bench scatter(int64_t rows, int64_t columns, int64_t updates) {
  const char* text =
      R"(func.func @k(%i: tensor<Nx1xi32>, %u: tensor<NxCxf32>) -> tensor<RxCxf32> {
     %z = arith.constant dense<0.0> : tensor<RxCxf32>
     %s = arith.constant dense<S> : tensor<Nx1xi32>
     %p = arith.muli %i, %s : tensor<Nx1xi32>
     %r = nn.scatter %z[%p], %u axes = [0] kind = add : tensor<RxCxf32>, tensor<Nx1xi32>, tensor<NxCxf32> -> tensor<RxCxf32> return %r : tensor<RxCxf32> })";
  const std::string r = std::to_string(rows), c = std::to_string(columns),
                    n = std::to_string(updates);
  return {"scatter " + n + " into " + r + "x" + c,
          replaceAll(text, {{"<R", "<" + r},
                            {"xC", "x" + c},
                            {"<N", "<" + n},
                            {"<S>", "<" + std::to_string(rows / 10) + ">"}}),
          4.0 * static_cast<double>(columns * (rows + 3 * updates)), "GB/s"};
}

double bestSeconds(const std::function<void()>& body) {
  double best = 1e9;
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) {
    auto start = std::chrono::steady_clock::now();
    body();
    auto end = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double>(end - start).count());
    if (i > 5 && std::chrono::duration<double>(end - begin).count() > 0.5)
      break;
  }
  return best;
}

void report(const Bench& bench) {
  std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(bench.text);
  if (!kernel) return;
  std::mt19937 generator(1);
  std::vector<AlignedBytes> buffers =
      kernel->makeBuffers(kernel->randomArguments(generator));
  double seconds =
      bestSeconds([&] { kernel->run(buffers, 0, kernel->code().range); });
  std::printf(
      "%-45s %9.1f us %8.1f %-8s compiled in %4.0f ms, range %ld, grain %ld\n",
      bench.name.c_str(), seconds * 1e6, bench.work / seconds * 1e-9,
      bench.unit, kernel->compileSeconds() * 1e3, kernel->code().range,
      kernel->code().grain);
}

// A kernel with its buffers, which several threads run in equal parts.
class Runner {
 public:
  explicit Runner(const Bench& bench)
      : kernel_(CompiledKernel::fromText(bench.text)) {
    std::mt19937 generator(1);
    if (kernel_)
      buffers_ = kernel_->makeBuffers(kernel_->randomArguments(generator));
  }

  double seconds(int64_t threads) {
    const auto start = std::chrono::steady_clock::now();
    const int64_t range = kernel_->code().range;
    std::vector<std::thread> others;
    for (int64_t i = 1; i < threads; ++i)
      others.emplace_back([=] {
        kernel_->run(buffers_, range * i / threads, range * (i + 1) / threads);
      });
    kernel_->run(buffers_, 0, range / threads);
    for (std::thread& other : others) other.join();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

 private:
  std::unique_ptr<CompiledKernel> kernel_;
  std::vector<AlignedBytes> buffers_;
};

double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Runs two kernels in turns, and prints the ratio of their median times.
void compare(const Bench& whole, const Bench& part) {
  Runner first(whole), second(part);
  for (int64_t threads : {1, 2}) {
    std::vector<double> of_whole, of_part;
    for (int i = 0; i < 7; ++i) {
      of_whole.push_back(first.seconds(threads));
      of_part.push_back(second.seconds(threads));
    }
    const double whole_seconds = medianOf(of_whole),
                 part_seconds = medianOf(of_part);
    std::printf("%-45s %9.1f us, %.3f of %9.1f us, %ld threads\n",
                part.name.c_str(), part_seconds * 1e6,
                part_seconds / whole_seconds, whole_seconds * 1e6, threads);
  }
}

}  // namespace
}  // namespace partita::kernels

int main(int argc, char** argv) {
  using namespace partita::kernels;
  const Masks causal = {true};
  const std::vector<Bench> benches = {gelu(4 << 20),
                                      geluTanh(4 << 20),
                                      gelu(128 * 3072),
                                      layerNorm(128, 768),
                                      residualLayerNorm(128, 768),
                                      softmax(1536, 128),
                                      matrixVector(4096, 4096, false),
                                      matrixVector(4096, 4096, true),
                                      attention(8, 12, 128, 32, {}),
                                      attention(1, 12, 197, 64, {}),
                                      attention(1, 12, 128, 64, causal),
                                      attention(1, 12, 1024, 64, causal),
                                      attentionGrad(4, 12, 256, 64, causal),
                                      attentionGrad(8, 12, 197, 64, {}),
                                      attentionGrad(8, 12, 196, 32, {}),
                                      scatter(50257, 768, 8192),
                                      scatter(50257, 64, 8192),
                                      scatter(1000, 64, 8192)};
  for (const Bench& bench : benches)
    if (argc < 2 || bench.name.find(argv[1]) != std::string::npos)
      report(bench);
  if (argc < 2 || std::string(argv[1]) == "masks") {
    for (const Masks& masks : {Masks{true, 512}, Masks{true, 0, 512}}) {
      compare(attention(1, 2, 8192, 64, causal),
              attention(1, 2, 8192, 64, masks));
      compare(attentionGrad(1, 2, 8192, 64, causal),
              attentionGrad(1, 2, 8192, 64, masks));
    }
    // Time should follow the kept blocks.
    std::vector<Masks> sparse(4);
    sparse[0].blocks = bigBird, sparse[0].pattern = "BigBird";
    sparse[1].blocks = strided, sparse[1].pattern = "strided";
    sparse[2].blocks = fixed, sparse[2].pattern = "fixed";
    sparse[3] = {true, 512, 0, 64};
    for (const Masks& masks : sparse) {
      compare(attention(1, 2, 8192, 64, {}), attention(1, 2, 8192, 64, masks));
      compare(attentionGrad(1, 2, 8192, 64, {}),
              attentionGrad(1, 2, 8192, 64, masks));
    }
  }
}
