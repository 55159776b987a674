import type { Trial } from '../../trials/trial.js'
import type { TrialContext } from '../../trials/trial-scenario.js'
import type { CostsConfig } from './config.js'

/** Runs one part of a measurement and ends its servers and generators, so that they do not disturb the next part. */
export async function inTurn<T>(
  context: TrialContext<CostsConfig>,
  part: (context: TrialContext<CostsConfig>) => Promise<T>,
): Promise<T> {
  const trials: Trial[] = []
  const startTrial: typeof context.startTrial = async (settings) => {
    // It may end: the part that uses it fails with it, and afterwards it is stopped here.
    const trial = await context.startTrial(settings, true)
    trials.push(trial)
    return trial
  }
  try {
    return await part({ ...context, startTrial })
  } finally {
    await Promise.all(trials.map((trial) => trial.stop()))
  }
}
