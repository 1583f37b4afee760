"""The block formats of GGUF files that llama-quantize creates."""

#: Format: type and options for llama-quantize. It supports MXFP4 only for experts, hence the patterns.
FORMATS = {name: (name, []) for name in ("Q2_K", "Q3_K_S", "Q3_K_M", "Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M", "IQ4_NL", "IQ4_XS")}
FORMATS["MXFP4"] = ("MXFP4_MOE", ["--tensor-type", "attn=mxfp4", "--tensor-type", "ffn=mxfp4"])
FORMATS |= {name: (name, []) for name in ("Q5_0", "Q5_1", "Q5_K_S", "Q5_K_M", "Q6_K", "Q8_0")}
