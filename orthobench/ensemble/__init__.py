"""Many runs as one program: `ensemble=true`.

Every member is an ordinary run, with its own folder, claim, data, optimizer, curve, checkpoints and record, in its own
thread. Only the arithmetic is shared: forward pass, loss, gradients, the optimizer's update and the evaluations of all
members are computed at once, with a leading axis S over members (`stacked.py`). Only one thread runs at a time
(`threads_in_turn.py`).
"""
