// What the metrics are called, in what unit, and what they mean.

const METRICS = {
  entropy: ["Entropy of the policy", "nats", "Per state. Of particles with weights, a lower bound."],
  alpha: ["Temperature α", "reward per nat", "How much reward a nat of entropy is worth."],
  step_size: ["Step size ε", "", "As used, after the bound."],
  jacobian_norm: ["‖εJ‖", "", "Size of a step's derivative. Without references the density fails at 1."],
  guarded: ["Guarded steps", "% of steps", "Share of sampler steps that a guard shortened."],
  bandwidth: ["Kernel bandwidth σ", "before tanh", "Reach of the repulsion between particles."],
  particle_std: ["Spread of the particles", "std before tanh", "Within one state, after the sampler."],
  effective_sample_size: [
    "Effective sample size", "particles",
    "How many particles have weight, of num_particles; near 1 the others have no effect.",
  ],
  folded: ["Folding steps", "share", "Particle steps that are not invertible; should be 0."],
  std: ["Spread of the start", "std before tanh", "Of the Gaussian that the particles start from."],
  critic_loss: ["Critic loss", "squared return", "Mean squared error against the target."],
  guide_loss: [
    "Guide's loss", "squared return", "Of the critic that the sampler climbs, against the same target.",
  ],
  td_error: ["TD error", "return", "Mean absolute error against the target."],
  q_mean: ["Mean Q", "return", "Of the actions in the batch."],
  reward_scale: ["Scale of rewards", "reward", "What rewards are divided by, with categorical critics."],
  clipped: ["Targets out of range", "share", "Of their mass, beyond what categorical critics can tell apart."],
  actor_loss: ["Actor loss", "return", "α log π − Q; the actor makes it smaller."],
  policy_loss: ["Policy loss", "", "The clipped objective with its sign turned."],
  value_loss: ["Value loss", "squared return", "Mean squared error against the returns."],
  soft_value: ["Soft value", "return", "Estimated by importance sampling."],
  wall_steps_per_second: ["Speed", "steps/s", "Environment steps of all seeds together."],
  episodes: ["Episodes", "per record", "That ended in the interval."],
};
const SPLIT = [
  ["entropy", "total"], ["entropy_start", "start"], ["entropy_sampler", "sampler"], ["entropy_squash", "squash"],
  ["entropy_flow", "flow"],
];
const INSIDE = [
  "alpha", "step_size", "jacobian_norm", "guarded", "effective_sample_size", "particle_std", "std", "bandwidth",
  "folded",
];
const CRITIC = [
  "critic_loss", "guide_loss", "td_error", "q_mean", "reward_scale", "clipped", "value_loss", "policy_loss",
];
