import { describe, expect, it } from 'vitest'
import type { Progress } from './progress.js'
import { RunProgress } from './run-progress.js'

/** Time that passes only when somebody waits. */
function setUp(stepCount: number) {
  const said: string[] = []
  const ratios: number[] = []
  let nowMs = 0
  const progress: Progress = {
    phase: (name) => said.push(name),
    update: (ratio, detail) => {
      ratios.push(ratio)
      said.push(detail)
    },
    note: (text) => said.push(text),
    done: () => undefined,
  }
  const run = new RunProgress(progress, stepCount, {
    now: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms
    },
  })
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { run, said, ratios, pass, now: () => nowMs }
}

describe('the progress of a run', () => {
  it('names the step, its phase and what is left', () => {
    const { run, said, ratios, pass } = setUp(4)
    run.step('raw, 10 subscribers')
    run.phase('connecting')
    pass(90_000)
    run.step('uws, 10 subscribers')
    run.phase('publishing')
    pass(30_000)
    run.update(0.5, 'half')
    expect(said).toEqual([
      '[1/4] raw, 10 subscribers',
      'connecting',
      '[2/4] uws, 10 subscribers',
      'publishing · 5 min left',
      'publishing half · 4 min left',
    ])
    expect(ratios.at(-1)).toBe(0.25)
  })

  it('shows time and rates until the work is done, and gives its result', async () => {
    const { run, said, now } = setUp(1)
    run.step('raw')
    run.phase('publishing')
    let finish: (result: string) => void = () => undefined
    const work = new Promise<string>((resolve) => {
      finish = resolve
    })
    const counts = () => {
      if (now() >= 2_000) finish('done')
      return { deliveries: now() * 1_500, published: now() }
    }
    expect(await run.during(work, { expectedMs: 2_000, counts })).toBe('done')
    expect(said).toContain('publishing 1 of 2 s, 1.5M deliveries/s, 1k published/s')
  })

  it('fails as the work fails', async () => {
    const { run } = setUp(1)
    run.step('raw')
    await expect(run.during(Promise.reject(new Error('the target has died')))).rejects.toThrow('the target has died')
  })
})
