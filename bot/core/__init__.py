"""What the bot decides, without doing it.

`react(state, event, now)` is the only entrance. It changes `state` and returns the effects that are
to be performed; each effect that talks to another system comes back as `EffectDone` or `EffectFailed`
with its id. Nothing here waits, sleeps, reads a clock, logs, or knows an address.

Per run the core holds what should be (`card.desired`, computed from the Workflow) and what is known
to be (`Memory`, the annotation on the Workflow; the card last shown) and lets one effect at a time
close the distance (`runs.next_step`). A crash, a repeated event or a lost answer therefore needs no code
of its own: the distance is still there, and the next step is computed again.

Reading order: `workflow` (what Argo says), `results` (what the runner says), `verdict` (what it means),
`memory` (what we promised), `runs` (the next step), `commands` (what people ask), `react` (all of it).
"""
