"""``xcfg kernels drift``: how far logprobs of real ranks are from float64, for every topology and dtype.

This side of it, which makes inputs, launches ranks and compares, imports no torch.
"""
