// One import and one compilation per artifact, and a description of them.
#include "compiler/driver/generation.h"

#include <algorithm>
#include <filesystem>

#include "compiler/driver/compile.h"
#include "compiler/driver/session.h"
#include "compiler/plan/plan.h"
#include "frontends/huggingface/huggingface.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/base/atomic_file.h"

namespace partita::driver {
namespace {

namespace fs = std::filesystem;
using huggingface::CacheOptions;
using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

constexpr int64_t kUsualLength = 1024;
constexpr int64_t kShortestPrompt = 32;

// An object in a file of the model's folder; empty if there is none.
llvm::json::Object readObject(const std::string& folder, const char* file) {
  auto text = llvm::MemoryBuffer::getFile((fs::path(folder) / file).string());
  if (!text) return {};
  llvm::Expected<llvm::json::Value> value =
      llvm::json::parse((*text)->getBuffer());
  if (!value) {
    // The importer reports a config.json that is not JSON.
    llvm::consumeError(value.takeError());
    return {};
  }
  llvm::json::Object* object = value->getAsObject();
  return object ? std::move(*object) : llvm::json::Object();
}

// Values of the model's own files that generation.json repeats.
struct ModelFacts {
  int64_t positions = 0;         // 0: unknown
  llvm::json::Array end;         // tokens that end a text
  std::optional<int64_t> start;  // first token of a decoder with an encoder
};

ModelFacts readFacts(const std::string& model) {
  const llvm::json::Object config = readObject(model, "config.json"),
                           generation =
                               readObject(model, "generation_config.json");
  ModelFacts facts;
  for (const char* key : {"n_positions", "max_position_embeddings"})
    if (auto count = config.getInteger(key)) facts.positions = *count;
  for (const llvm::json::Object* object : {&config, &generation}) {
    const llvm::json::Value* end = object->get("eos_token_id");
    if (end == nullptr) continue;
    if (end->getAsInteger()) facts.end = llvm::json::Array{*end};
    if (const llvm::json::Array* list = end->getAsArray()) facts.end = *list;
  }
  if (config.getBoolean("is_encoder_decoder").value_or(false)) {
    facts.start = 0;
    for (const llvm::json::Object* object : {&config, &generation})
      if (auto start = object->getInteger("decoder_start_token_id"))
        facts.start = *start;
  }
  return facts;
}

// Programs for prompts and for tokens divide the cache in the same way: its
// heads and its length have the same names in both.
void nameCache(plan::Plan& plan, bool is_int8) {
  std::vector<std::string> names = {"*keys:1=N", "*values:1=N", "*keys:2=L",
                                    "*values:2=L"};
  if (is_int8)
    names.insert(names.end(), {"*key_scales:1=N", "*value_scales:1=N",
                               "*key_scales:2=L", "*value_scales:2=L"});
  for (const std::string& name : names)
    if (auto parsed = plan::ParseName(name); parsed.ok())
      plan.names.push_back(*parsed);
}

// True if the plan divides rows in any layer or stage.
bool dividesRows(const plan::Plan& plan) {
  for (const plan::Entry& entry : plan.shard)
    for (const plan::ShardedDimension& divided : entry.dimensions)
      if (divided.dimension == "B" && !divided.axes.empty()) return true;
  return false;
}

// Files of prompts that generation.json of a folder names.
std::vector<std::string> promptFiles(const std::string& folder) {
  const llvm::json::Object object = readObject(folder, "generation.json");
  std::vector<std::string> files;
  const llvm::json::Array* prompts = object.getArray("prompts");
  if (prompts == nullptr) return files;
  for (const llvm::json::Value& prompt : *prompts) {
    const llvm::json::Object* entry = prompt.getAsObject();
    const auto file = entry ? entry->getString("file") : std::nullopt;
    if (file && fs::path(file->str()).filename() == file->str() &&
        file->starts_with("prompts-") && file->ends_with(".partita"))
      files.push_back(file->str());
  }
  return files;
}

class FolderCompiler {
 public:
  FolderCompiler(const GenerationOptions& options, Fault& fault)
      : options_(options), fault_(fault), facts_(readFacts(options.model)) {
    length_ = options.length.value_or(
        facts_.positions > 0 ? std::min(facts_.positions, kUsualLength)
                             : kUsualLength);
  }

  LogicalResult run() {
    std::error_code error;
    if (fs::equivalent(options_.folder, options_.model, error))
      return wrong("expected a folder other than the model's; name another");
    if (options_.compile.plan && dividesRows(*options_.compile.plan))
      return wrong(
          "expected no division of B, found one; rows of the cache are not "
          "divided, as a prompt has one: divide N, M, V or L",
          options_.compile.plan->origin);
    fs::create_directories(options_.folder, error);
    if (error) return wrong("cannot create the folder: " + error.message());
    const std::vector<std::string> before = promptFiles(options_.folder);
    CacheOptions cache;
    cache.rows = options_.rows;
    cache.length = length_;
    cache.is_int8 = options_.is_int8_cache;
    cache.step = CacheOptions::Step::kTokens;
    if (failed(compile("tokens.partita", cache, 1))) return failure();
    cache.step = CacheOptions::Step::kPrompts;
    llvm::json::Array prompts;
    for (const int64_t length : promptLengths(length_)) {
      const std::string file =
          llvm::formatv("prompts-{0}.partita", length).str();
      if (failed(compile(file, cache, length))) return failure();
      prompts.push_back(llvm::json::Object{{"file", file}, {"length", length}});
    }
    if (failed(describe(std::move(prompts)))) return failure();
    removeUnused(before);
    return success();
  }

 private:
  // `origin` is a file or an option; empty: the folder.
  LogicalResult wrong(const std::string& what, const std::string& origin = "") {
    fault_ = Fault::kUser;
    return mlir::emitError(mlir::UnknownLoc::get(session_.context()))
           << (origin.empty() ? options_.folder : origin) << ": " << what;
  }

  LogicalResult compile(const std::string& file, const CacheOptions& cache,
                        int64_t length) {
    ImportOptions import = options_.import;
    import.cache = cache;
    if (cache.step == CacheOptions::Step::kPrompts)
      import.dims.emplace("seq", length);
    fault_ = Fault::kUser;
    auto module = importModel(options_.model, import, session_.context());
    if (!module) return failure();
    if (!module->getName()) module->setName(fs::path(file).stem().string());
    CompileOptions compile = options_.compile;
    if (compile.plan) nameCache(*compile.plan, options_.is_int8_cache);
    compile.output = (fs::path(options_.folder) / file).string();
    return success(succeeded(compileToFile(*module, compile, &fault_)));
  }

  // Removes prompt programs of an earlier compilation from the folder.
  void removeUnused(const std::vector<std::string>& before) {
    const std::vector<std::string> now = promptFiles(options_.folder);
    for (const std::string& file : before) {
      std::error_code error;
      if (std::find(now.begin(), now.end(), file) == now.end())
        fs::remove(fs::path(options_.folder) / file, error);
    }
  }

  LogicalResult describe(llvm::json::Array prompts) {
    llvm::json::Object facts{{"rows", options_.rows},
                             {"length", length_},
                             {"tokens", "tokens.partita"},
                             {"prompts", std::move(prompts)},
                             {"end", std::move(facts_.end)}};
    if (facts_.start) facts["start"] = *facts_.start;
    const fs::path tokenizer = fs::path(options_.model) / "tokenizer.json";
    std::error_code error;
    if (fs::exists(tokenizer, error)) {
      fs::copy_file(tokenizer, fs::path(options_.folder) / "tokenizer.json",
                    fs::copy_options::overwrite_existing, error);
      if (error) return wrong("cannot copy tokenizer.json: " + error.message());
      facts["tokenizer"] = "tokenizer.json";
    }
    const std::string path =
        (fs::path(options_.folder) / "generation.json").string();
    const absl::Status written = base::WriteFileAtomically(
        path,
        llvm::formatv("{0:2}\n", llvm::json::Value(std::move(facts))).str());
    return written.ok() ? success() : wrong(std::string(written.message()));
  }

  const GenerationOptions& options_;
  Fault& fault_;
  Session session_;
  ModelFacts facts_;
  int64_t length_ = 0;
};

}  // namespace

LogicalResult compileGeneration(const GenerationOptions& options,
                                Fault& fault) {
  return FolderCompiler(options, fault).run();
}

std::vector<int64_t> promptLengths(int64_t length) {
  std::vector<int64_t> lengths;
  for (int64_t next = kShortestPrompt; next < length; next *= 4)
    lengths.push_back(next);
  lengths.push_back(length);
  return lengths;
}

}  // namespace partita::driver
