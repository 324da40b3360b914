"""What other libraries call a setting or a command, and what it is called here: for "did you mean".

SB3, CleanRL, Tianshou, RLlib, Dopamine. A name that is a setting here is never looked up.
"""

from __future__ import annotations

from collections.abc import Container

OTHER_NAMES = {
    "lr": "learning_rate", "alpha": "learning_rate", "step_size": "learning_rate",
    "total_timesteps": "steps", "timesteps": "steps", "num_timesteps": "steps", "n_timesteps": "steps",
    "total_steps": "steps", "num_steps": "steps", "max_steps": "steps", "num_env_steps": "steps",
    "discount": "gamma", "discount_factor": "gamma",
    "n_steps": "n_step", "multi_step": "n_step", "update_horizon": "n_step", "estimation_step": "n_step",
    "replay_size": "buffer_size", "replay_capacity": "buffer_size", "memory_size": "buffer_size", "n": "buffer_size",
    "capacity": "buffer_size", "replay_buffer_size": "buffer_size", "buffer": "buffer_size",
    "batch": "batch_size", "minibatch_size": "batch_size", "train_batch_size": "batch_size",
    "target_update_interval": "target_period", "target_network_frequency": "target_period",
    "target_update_freq": "target_period", "target_update_period": "target_period", "sync_every": "target_period",
    "tau": "target_average", "polyak": "target_average",
    "train_freq": "update_every", "train_frequency": "update_every", "update_period": "update_every",
    "update_freq": "update_every", "utd_ratio": "gradient_steps", "min_replay_history": "learning_starts",
    "warmup_steps": "learning_starts", "start_steps": "learning_starts",
    "max_grad_norm": "gradient_clip", "grad_clip": "gradient_clip", "clip_grad_norm": "gradient_clip",
    "net_arch": "hidden", "hidden_sizes": "hidden", "hidden_size": "hidden", "hiddens": "hidden", "layers": "hidden",
    "num_units": "hidden", "activation_fn": "activation",
    "exploration_fraction": "epsilon_decay", "eps_decay": "epsilon_decay", "epsilon_decay_period": "epsilon_decay",
    "exploration_initial_eps": "epsilon_start", "start_e": "epsilon_start", "eps_start": "epsilon_start",
    "initial_epsilon": "epsilon_start",
    "exploration_final_eps": "epsilon_final", "end_e": "epsilon_final", "eps_end": "epsilon_final",
    "epsilon_end": "epsilon_final", "epsilon_train": "epsilon_final", "final_epsilon": "epsilon_final",
    "double": "double_q", "double_dqn": "double_q", "is_double": "double_q", "dueling_dqn": "dueling",
    "prioritized_replay": "sampling", "per": "sampling", "prioritised": "sampling", "prioritized": "sampling",
    "n_atoms": "atoms", "num_atoms": "atoms", "v_min": "value_low", "vmin": "value_low", "v_max": "value_high",
    "vmax": "value_high",
    "num_envs": "n_envs", "num_workers": "env_processes", "num_seeds": "seeds", "n_seeds": "seeds",
    "random_seed": "seed", "optimizer": "optimiser", "frame_skip": "frame_stack", "n_stack": "frame_stack",
    "k": "contexts", "num_contexts": "contexts", "n_clusters": "contexts",
    "eval_freq": "eval_every", "evaluation_interval": "eval_every", "n_eval_episodes": "eval_episodes",
    "env": "task", "env_id": "task", "env_name": "task", "environment": "task",
    "algo": "method", "algorithm": "method", "agent": "method",
    "output": "out", "output_dir": "out", "log_dir": "out", "logdir": "out", "save_path": "out",
    "logger": "track", "tensorboard": "track", "wandb": "track",
    "repeat_action_probability": "sticky", "sticky_action": "sticky",
    "learn": "train", "fit": "train", "eval": "evaluate", "test": "evaluate", "enjoy": "watch", "play": "watch",
    "render": "watch", "compare": "plot", "results": "list", "runs": "list", "ls": "list", "continue": "resume",
}  # fmt: skip
NOTES = {
    "exploration_fraction": "a number of steps, not a share",
    "per": "with the value prioritised", "prioritized": "with the value prioritised",
    "prioritised": "with the value prioritised", "prioritized_replay": "with the value prioritised",
    "polyak": "the share of the new weights", "env": "named without a flag", "env_id": "named without a flag",
    "compare": "which takes several runs", "results": "as in iqrl list runs", "runs": "as in iqrl list runs",
    "ls": "as in iqrl list runs",
}  # fmt: skip
"""what is different here beside the name"""
SAID_OTHERWISE = {
    "verbose": "to see how far it is, give progress_bar=True to learn or iqrl.train",
    "progress_bar": "it is an argument of learn and iqrl.train",
    "callback": "it is an argument of learn and iqrl.train",
    "tensorboard_log": 'give tracker="tensorboard" to learn or iqrl.train',
    "policy": "the network follows from the observations; hidden=(64, 64) sets its layers",
    "policy_kwargs": "hidden=(64, 64) sets the layers of the network, network=… takes one of your own",
}
"""keywords of other libraries for what is no setting here, and how it is said here"""


def name_here(name: str, valid: Container[str]) -> str | None:
    """What `name` is called here, as it stands in `valid`, and what else is different; None if nobody calls it so.

    >>> name_here("--lr", ["--learning-rate"]), name_here("lr", ["learning_rate"]), name_here("mine", ["steps"])
    ('--learning-rate', 'learning_rate', None)
    >>> name_here("exploration_fraction", ["epsilon_decay"])
    'epsilon_decay, a number of steps, not a share'
    """
    plain = name.lstrip("-").replace("-", "_").lower()
    found = OTHER_NAMES.get(plain)
    if found is None:
        return None
    written = "--" + found.replace("_", "-") if name.startswith("-") else found
    if written not in valid:
        return None
    return f"{written}, {NOTES[plain]}" if plain in NOTES else written
