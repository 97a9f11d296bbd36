"""torch's own layers with our weights, as the reference to hold ours against."""

import torch
from torch import nn

from transformer.attention import MultiHeadAttention
from transformer.layers import Layer
from transformer.model import Transformer


def copy_attention(own: MultiHeadAttention, reference: nn.MultiheadAttention) -> None:
    """Copies the weights of one attention."""
    projections = (own.q_proj, own.k_proj, own.v_proj)
    reference.in_proj_weight.copy_(torch.cat([projection.weight for projection in projections]))
    reference.in_proj_bias.copy_(torch.cat([projection.bias for projection in projections]))
    reference.out_proj.load_state_dict(own.out_proj.state_dict())


def copy_layer(own: Layer, reference: nn.Module) -> None:
    """Copies the weights of one layer."""
    reference.linear1.load_state_dict(own.feed_forward.inner.state_dict())
    reference.linear2.load_state_dict(own.feed_forward.outer.state_dict())
    copy_attention(own.self_attention, reference.self_attn)
    residuals = [own.self_attention_residual, own.feed_forward_residual]
    if own.cross_attention is not None:
        copy_attention(own.cross_attention, reference.multihead_attn)
        residuals.insert(1, own.cross_attention_residual)
    for place, residual in enumerate(residuals, start=1):
        getattr(reference, f"norm{place}").load_state_dict(residual.norm.state_dict())


def as_nn_transformer(model: Transformer) -> nn.Transformer:
    """torch's stacks with our weights; nn.Transformer ends both with a LayerNorm, which post-norm lacks."""
    config = model.config
    reference = nn.Transformer(
        config.d_model,
        config.n_heads,
        config.n_encoder_layers,
        config.n_decoder_layers,
        config.d_ff,
        activation=config.activation,
        batch_first=True,
        norm_first=config.norm == "pre",
    ).eval()
    reference.encoder.use_nested_tensor = False
    for own, other in ((model.encoder, reference.encoder), (model.decoder, reference.decoder)):
        for own_layer, other_layer in zip(own.layers, other.layers, strict=True):
            copy_layer(own_layer, other_layer)
        if config.norm == "pre":
            other.norm.load_state_dict(own.final_norm.state_dict())
        else:
            other.norm = None
    return reference
