// The model builders and their common input.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_MODELS_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_MODELS_H_

#include <optional>
#include <string>

#include "frontends/huggingface/config.h"
#include "frontends/huggingface/huggingface.h"
#include "frontends/huggingface/weights.h"

namespace partita::huggingface {

using OwningModule = mlir::OwningOpRef<mlir::ModuleOp>;

// The modules that a sentence-transformers folder adds to its encoder.
struct SentencePooling {
  bool first_token = false;  // false: mean over the mask
  bool normalize = false;    // scale to length 1
};

struct ModelSource {
  mlir::MLIRContext* context;
  Config& config;
  Weights& weights;
  const HfOptions& options;
  std::optional<SentencePooling> pooling;
};

// Each function reads its config, builds the module and checks the weights.
// Returns null after an error.
OwningModule buildGpt2(ModelSource& source);
OwningModule buildBert(ModelSource& source);
OwningModule buildVit(ModelSource& source);
OwningModule buildVmoe(ModelSource& source);
OwningModule buildT5(ModelSource& source);
OwningModule buildLlama(ModelSource& source);
OwningModule buildQwen3(ModelSource& source);
OwningModule buildMixtral(ModelSource& source);
OwningModule buildQwen3Moe(ModelSource& source);
OwningModule buildDeepseekV3(ModelSource& source);
OwningModule buildSwitchTransformers(ModelSource& source);
OwningModule buildCoatnet(ModelSource& source);

// The config of a timm CoAtNet ("coatnet_0_rw_224") or of the paper's family
// ("coatnet-0"), in the form that buildCoatnet reads. Null if the name is
// unknown.
nlohmann::json coatnetConfig(const std::string& name);
std::vector<std::string> coatnetNames();

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_MODELS_H_
