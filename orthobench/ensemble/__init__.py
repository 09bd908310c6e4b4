"""Many runs as one program: `ensemble=true`.

Every member is an ordinary run, with its own folder, claim, data, optimizer, curve, checkpoints and record, in a thread
of its own. Only the arithmetic meets: forward, loss, gradients, the optimizer's update and the evaluations of all
members are computed at once, with a leading axis S over members (`stacked.py`). Threads take turns (`turns.py`), so
that nothing else runs side by side.
"""
