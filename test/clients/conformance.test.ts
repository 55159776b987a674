import { afterAll, describe, it } from 'vitest'
import { Adapter } from '../../packages/conformance/src/client/adapter.js'
import { runCase } from '../../packages/conformance/src/client/run-case.js'
import { readCases } from '../../packages/conformance/src/client/run-cases.js'
import { ROOT } from '../deploy/files.js'
import { firstAndInTurn } from '../in-turn.js'
import { CLIENTS, MISSING } from './adapters.js'

/** A case has pauses of five seconds at most, and a busy machine takes its time. */
const CASE_MS = 60_000

const cases = await readCases()

/** Cases mostly wait. */
const SIDE_BY_SIDE = { concurrent: true }

describe.each(firstAndInTurn(CLIENTS))('$name', SIDE_BY_SIDE, ({ command, env, cannot }) => {
  /** Each plays one case after the other. */
  const idle: Adapter[] = []

  afterAll(() => Promise.all(idle.map((adapter) => adapter.stop())))

  for (const played of cases) {
    if (played.needs?.some((need) => cannot.includes(need))) continue
    const play = async () => {
      const adapter = idle.pop() ?? new Adapter(command, ROOT, env)
      try {
        await adapter.hello
        await runCase(played, adapter)
      } finally {
        idle.push(adapter)
      }
    }
    it(`${played.name} [${played.clauses.join(', ')}]`, play, CASE_MS)
  }
})

for (const missing of MISSING) it.skip(missing, () => undefined)
