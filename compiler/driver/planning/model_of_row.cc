// Writes sizes as a Hugging Face config.
#include "compiler/driver/planning/model_of_row.h"

#include "frontends/huggingface/huggingface.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::driver {
namespace {

using llvm::json::Array;
using llvm::json::Object;

// Mixtral's layers: a Llama's, with experts instead of the MLP.
Object configOfExperts(const planner::Architecture& a) {
  return Object{
      {"model_type", "mixtral"},           {"vocab_size", a.vocab},
      {"hidden_size", a.hidden},           {"intermediate_size", a.expert_ffn},
      {"num_hidden_layers", a.layers},     {"num_attention_heads", a.heads},
      {"num_key_value_heads", a.kv_heads}, {"num_local_experts", a.experts},
      {"num_experts_per_tok", a.topk},     {"max_position_embeddings", a.seq},
      {"tie_word_embeddings", a.tied}};
}

Object configOf(const planner::Architecture& a) {
  if (a.experts > 0) return configOfExperts(a);
  switch (a.kind) {
    case planner::ModelKind::kGpt:
      return Object{{"model_type", "gpt2"}, {"vocab_size", a.vocab},
                    {"n_positions", a.seq}, {"n_embd", a.hidden},
                    {"n_layer", a.layers},  {"n_head", a.heads},
                    {"n_inner", a.ffn},     {"tie_word_embeddings", a.tied},
                    {"resid_pdrop", 0},     {"embd_pdrop", 0},
                    {"attn_pdrop", 0}};
    case planner::ModelKind::kBert:
      return Object{{"model_type", "bert"},
                    {"architectures", Array{"BertForMaskedLM"}},
                    {"vocab_size", a.vocab},
                    {"hidden_size", a.hidden},
                    {"num_hidden_layers", a.layers},
                    {"num_attention_heads", a.heads},
                    {"intermediate_size", a.ffn},
                    {"max_position_embeddings", a.seq},
                    {"hidden_dropout_prob", 0},
                    {"attention_probs_dropout_prob", 0}};
    case planner::ModelKind::kLlama:
      return Object{{"model_type", "llama"},
                    {"vocab_size", a.vocab},
                    {"hidden_size", a.hidden},
                    {"intermediate_size", a.ffn},
                    {"num_hidden_layers", a.layers},
                    {"num_attention_heads", a.heads},
                    {"num_key_value_heads", a.kv_heads},
                    {"max_position_embeddings", a.seq},
                    {"tie_word_embeddings", a.tied}};
    case planner::ModelKind::kT5:
      return Object{{"model_type", "t5"},
                    {"vocab_size", a.vocab},
                    {"d_model", a.hidden},
                    {"d_kv", a.hidden / a.heads},
                    {"d_ff", a.ffn},
                    {"num_layers", a.layers},
                    {"num_heads", a.heads},
                    {"feed_forward_proj", "gated-gelu"},
                    {"tie_word_embeddings", a.tied},
                    {"dropout_rate", 0}};
  }
  return Object();
}

}  // namespace

mlir::OwningOpRef<mlir::ModuleOp> modelOfRow(
    const planner::Architecture& architecture, int64_t batch,
    mlir::MLIRContext* context) {
  if (architecture.experts > 0 &&
      (architecture.kind != planner::ModelKind::kLlama ||
       architecture.shared_ffn > 0)) {
    mlir::emitError(mlir::UnknownLoc::get(context))
        << "--row: expected experts as in Mixtral, i.e. model_family llama "
           "without shared_experts, found "
        << (architecture.shared_ffn > 0 ? "shared experts"
                                        : ToString(architecture.kind))
        << ": plan the model itself, or predict other software with partita "
           "simulate --sweep";
    return nullptr;
  }
  huggingface::HfOptions options;
  options.with_weights = false;
  options.training = true;
  options.dims = {{"batch", batch}, {"seq", architecture.seq}};
  if (architecture.kind == planner::ModelKind::kT5)
    options.dims["decoder_seq"] = architecture.decoder_seq;
  return huggingface::importConfig(
      llvm::formatv("{0}", llvm::json::Value(configOf(architecture))).str(),
      "--row", options, context);
}

}  // namespace partita::driver
