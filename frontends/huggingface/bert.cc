// BERT: a post-norm encoder (Devlin et al., 2019). The weights or the config
// choose the head: masked tokens, classes, the pooled first token, or a
// sentence embedding.
#include <cmath>

#include "frontends/huggingface/builder.h"
#include "frontends/huggingface/models.h"

namespace partita::huggingface {
namespace {

enum class Head { kNone, kPooler, kMaskedTokens, kClasses, kSentence };

struct BertConfig {
  BertConfig(Config& config, std::optional<double> forced)
      : vocabulary(config.size("vocab_size")),
        positions(config.size("max_position_embeddings")),
        types(config.size("type_vocab_size", 2)),
        width(config.size("hidden_size")),
        layers(config.layers("num_hidden_layers")),
        heads(config.size("num_attention_heads")),
        inner(config.size("intermediate_size")),
        activation(config.text("hidden_act", "gelu")),
        epsilon(config.number("layer_norm_eps", 1e-12)),
        dropout(config.dropout("hidden_dropout_prob", forced)),
        attention_dropout(
            config.dropout("attention_probs_dropout_prob", forced)),
        classifier_dropout(config.has("classifier_dropout")
                               ? config.dropout("classifier_dropout", forced)
                               : dropout) {
    config.expectOneOf("hidden_act", activation, Builder::activationNames());
    config.expectDivides("num_attention_heads", heads, "hidden_size", width);
    config.expectOneOf("position_embedding_type",
                       config.text("position_embedding_type", "absolute"),
                       {"absolute"});
    if (config.flag("is_decoder", false))
      config.complain("'is_decoder': expected false, found true");
    classes = config.size("num_labels", 2);
    const auto labels = config.values().find("id2label");
    if (labels != config.values().end() && labels->is_object() &&
        !labels->empty())
      classes = static_cast<int64_t>(labels->size());
  }

  int64_t vocabulary, positions, types, width, layers, heads, inner, classes;
  std::string activation;
  double epsilon, dropout, attention_dropout, classifier_dropout;
};

// Chooses the head from the weights, or from the config's architecture if
// weights are seeded.
Head chooseHead(ModelSource& source) {
  if (source.pooling) return Head::kSentence;
  const Weights& weights = source.weights;
  const std::vector<std::string> architectures =
      source.config.texts("architectures");
  const std::string architecture =
      architectures.empty() ? "BertModel" : architectures[0];
  if (!weights.isSeeded()) {
    if (weights.has("cls.predictions.bias")) return Head::kMaskedTokens;
    if (weights.has("classifier.weight")) return Head::kClasses;
    return weights.has("bert.pooler.dense.weight") ? Head::kPooler
                                                   : Head::kNone;
  }
  if (architecture == "BertForMaskedLM" || architecture == "BertForPreTraining")
    return Head::kMaskedTokens;
  if (architecture == "BertForSequenceClassification") return Head::kClasses;
  source.config.expectOneOf(
      "architectures", architecture,
      {"BertModel", "BertForMaskedLM", "BertForPreTraining",
       "BertForSequenceClassification"});
  return Head::kPooler;
}

Value block(Builder& b, Value x, Value mask, const BertConfig& c) {
  const auto heads = [&](const char* name) {
    return b.splitHeads(
        b.linear(x, std::string("attention.self.") + name, c.width), c.heads);
  };
  const Value q = heads("query"), k = heads("key"), v = heads("value");
  const double scale = 1.0 / std::sqrt(static_cast<double>(c.width / c.heads));
  const Value seen = b.mergeHeads(
      b.attention(q, k, v, mask, scale, /*causal=*/false, c.attention_dropout));
  const auto dense = [&](Value from, const char* name) {
    return b.dropout(b.linear(from, name, c.width), c.dropout);
  };
  x = b.layerNorm(b.add(x, dense(seen, "attention.output.dense")),
                  "attention.output.LayerNorm", c.epsilon);
  const Value up =
      b.activation(b.linear(x, "intermediate.dense", c.inner), c.activation);
  return b.layerNorm(b.add(x, dense(up, "output.dense")), "output.LayerNorm",
                     c.epsilon);
}

Value embed(ModelBuilder& m, Value words, Value ids, Value types,
            const BertConfig& c) {
  const std::string base = "bert.embeddings.";
  const Value position = m.weight(base + "position_embeddings.weight",
                                  {c.positions, c.width}, Init::normal());
  const Value type = m.weight(base + "token_type_embeddings.weight",
                              {c.types, c.width}, Init::normal());
  Value x = m.rows(words, ids);
  const llvm::ArrayRef<int64_t> shape = m.shapeOf(x);
  // Without token types, every token has type 0.
  x = m.add(x, types ? m.rows(type, types)
                     : m.broadcast(m.reshape(m.slice(type, 0, 0, 1), {c.width}),
                                   shape, {2}));
  x = m.add(x, m.broadcast(m.slice(position, 0, 0, shape[1]), shape, {1, 2}));
  return m.dropout(m.layerNorm(x, base + "LayerNorm", c.epsilon), c.dropout);
}

Value maskedTokens(ModelBuilder& m, Value x, Value words, const BertConfig& c) {
  x = m.activation(m.linear(x, "cls.predictions.transform.dense", c.width),
                   c.activation);
  x = m.layerNorm(x, "cls.predictions.transform.LayerNorm", c.epsilon);
  return m.project(
      x, words,
      m.weight("cls.predictions.bias", {c.vocabulary}, Init::zeros()));
}

Value pooled(ModelBuilder& m, Value x, const BertConfig& c) {
  const Value first =
      m.reshape(m.slice(x, 1, 0, 1), {m.shapeOf(x)[0], c.width});
  return m.activation(m.linear(first, "bert.pooler.dense", c.width), "tanh");
}

Value sentence(ModelBuilder& m, Value x, Value mask,
               const SentencePooling& pooling) {
  const llvm::ArrayRef<int64_t> shape = m.shapeOf(x);
  Value result;
  if (pooling.first_token) {
    result = m.reshape(m.slice(x, 1, 0, 1), {shape[0], shape[2]});
  } else {
    const Value weight =
        mask ? m.toFloat(mask) : m.splat({shape[0], shape[1]}, 1.0);
    const Value total =
        m.sum(m.mul(x, m.broadcast(weight, shape, {0, 1})), {1});
    const Value count = m.atLeast(m.sum(weight, {1}), 1e-9);
    result = m.div(total, m.broadcast(count, m.shapeOf(total), {0}));
  }
  return pooling.normalize ? m.unitLength(result) : result;
}

}  // namespace

OwningModule buildBert(ModelSource& source) {
  const BertConfig c(source.config, source.options.dropout);
  source.weights.setBasePrefix("bert.");
  source.weights.ignore({"bert.embeddings.position_ids",
                         "cls.predictions.decoder.*",
                         "cls.seq_relationship.*"});
  const Head head = chooseHead(source);
  if (head == Head::kSentence || head == Head::kMaskedTokens)
    source.weights.ignore({"bert.pooler.*"});
  if (head == Head::kSentence) source.weights.ignore({"cls.*"});
  ModelBuilder m(source.context, source.config, source.weights, source.options,
                 {"batch", "seq"}, {"attention_mask", "token_type_ids"});
  const int64_t batch = m.dim("batch", 1),
                length = m.dim("seq", std::min<int64_t>(128, c.positions));
  m.expectAtMost("seq", length, c.positions, "max_position_embeddings");
  if (failed(m.check())) return nullptr;

  const auto input = [&](const char* name) {
    return m.input(name, {batch, length}, /*integer=*/true);
  };
  const Value ids = input("input_ids");
  const Value mask =
      m.takes("attention_mask", true) ? input("attention_mask") : Value();
  const Value types =
      m.takes("token_type_ids", false) ? input("token_type_ids") : Value();
  m.seedInput({c.dropout, c.attention_dropout, c.classifier_dropout});

  const Value words = m.weight("bert.embeddings.word_embeddings.weight",
                               {c.vocabulary, c.width}, Init::normal());
  Value x = embed(m, words, ids, types, c);
  ValueList shared;
  if (mask) shared.push_back(m.maskBias(mask));
  for (int64_t i = 0; i < c.layers; ++i) {
    ValueList inputs = {x};
    inputs.append(shared);
    x = m.layer(
        "block", "bert.encoder.layer." + std::to_string(i) + ".", inputs,
        [&](Builder& b, ValueRange in) {
          return ValueList{block(b, in[0], in.size() > 1 ? in[1] : Value(), c)};
        })[0];
  }
  switch (head) {
    case Head::kMaskedTokens:
      return m.finish({{maskedTokens(m, x, words, c), "y"}});
    case Head::kClasses:
      return m.finish(
          {{m.linear(m.dropout(pooled(m, x, c), c.classifier_dropout),
                     "classifier", c.classes),
            "y"}});
    case Head::kSentence:
      return m.finish({{sentence(m, x, mask, *source.pooling), "y"}});
    case Head::kPooler:
      return m.finish({{x, "y"}, {pooled(m, x, c), "pooler_output"}});
    case Head::kNone:
      return m.finish({{x, "y"}});
  }
}

}  // namespace partita::huggingface
