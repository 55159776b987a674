import { afterAll, beforeAll, describe, it } from 'vitest'
import { Adapter } from '../../packages/conformance/src/client/adapter.js'
import { runCase } from '../../packages/conformance/src/client/run-case.js'
import { readCases } from '../../packages/conformance/src/client/run-cases.js'
import { ROOT } from '../deploy/files.js'
import { CLIENTS, MISSING } from './adapters.js'

/** A case has pauses of five seconds at most, and a busy machine takes its time. */
const CASE_MS = 60_000

const cases = await readCases()

describe.each(CLIENTS)('$name', ({ command, env, cannot }) => {
  let adapter: Adapter

  beforeAll(async () => {
    adapter = new Adapter(command, ROOT, env)
    await adapter.hello
  })
  afterAll(() => adapter.stop())

  for (const played of cases) {
    if (played.needs?.some((need) => cannot.includes(need))) continue
    it(`${played.name} [${played.clauses.join(', ')}]`, () => runCase(played, adapter), CASE_MS)
  }
})

for (const missing of MISSING) it.skip(missing, () => undefined)
